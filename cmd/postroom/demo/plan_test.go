package demo

import (
	"slices"
	"testing"
)

func TestASeedRepeatsDeliveriesAndFaults(t *testing.T) {
	p := Plan{Seed: 7, Messages: 500, Senders: 3, Duplicates: 0.4, Fail: 0.1, Panic: 0.1, Hang: 0.1, Malformed: 0.1, Poison: 2}
	again, other := p, p
	other.Seed = 8
	for sender := range p.Senders {
		if !slices.Equal(p.deliveries(sender), again.deliveries(sender)) {
			t.Errorf("sender %d: the same seed gives other deliveries", sender)
		}
		if slices.Equal(p.deliveries(sender), other.deliveries(sender)) {
			t.Errorf("sender %d: another seed gives the same deliveries", sender)
		}
	}
	kinds := map[fault]int{}
	for n := range p.Messages {
		f := p.fault(id(n), 0)
		kinds[f]++
		if f != again.fault(id(n), 0) {
			t.Errorf("%s: the same seed gives another fault", id(n))
		}
	}
	for _, f := range []fault{sound, fail, panics, hang, malformed} {
		if kinds[f] < 10 {
			t.Errorf("fault %d came %d times in %d runs", f, kinds[f], p.Messages)
		}
	}
	if kinds[poison] != p.Poison {
		t.Errorf("%d messages are poison, want %d", kinds[poison], p.Poison)
	}
	p.Calm = true
	for n := range p.Messages {
		if f := p.fault(id(n), 0); f != sound {
			t.Fatalf("%s: fault %d though all is calm", id(n), f)
		}
	}
}

func TestSendersDeliverEachMessageAndDuplicateAndReorder(t *testing.T) {
	p := Plan{Seed: 1, Messages: 300, Senders: 3, Duplicates: 0.3}
	var all []int
	for sender := range p.Senders {
		list := p.deliveries(sender)
		if slices.IsSorted(list) {
			t.Errorf("sender %d delivers in order", sender)
		}
		all = append(all, list...)
	}
	if len(all) < p.Messages+p.Messages/10 {
		t.Errorf("%d deliveries of %d messages, want many duplicates", len(all), p.Messages)
	}
	slices.Sort(all)
	if unique := len(slices.Compact(all)); unique != p.Messages {
		t.Errorf("%d messages are delivered, want %d", unique, p.Messages)
	}
}

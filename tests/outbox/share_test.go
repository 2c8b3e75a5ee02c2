package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/outbox"
)

// Each of the relays has connections and an outbox of its own, as in processes of
// their own.
func TestSeveralRelaysSendEachMessageOnceAndKeepTheOrderOfGroups(t *testing.T) {
	const relays, groups, perGroup, free = 3, 6, 8, 60
	onEach(t, outbox.Options{}, func(w *world) {
		var msgs []postroom.Message
		for i := range perGroup {
			for g := range groups {
				msgs = append(msgs, message(fmt.Sprintf("g%d-%d", g, i), fmt.Sprintf("g%d", g)))
			}
		}
		for i := range free {
			msgs = append(msgs, message(fmt.Sprintf("free-%d", i), ""))
		}
		w.add(msgs...)
		r := &recorder{}
		ctx, cancel := context.WithCancel(w.Context())
		var wg sync.WaitGroup
		for range relays {
			other := join(w.TB, w.kind, w.dsn, outbox.Options{})
			wg.Go(func() {
				w.must(outbox.NewRelay(other.out, outbox.To(r), outbox.RelayOptions{Batch: 5, Lease: leaseTime, Poll: 20 * time.Millisecond}).Run(ctx))
			})
		}
		defer func() {
			cancel()
			wg.Wait()
		}()
		w.until("all is sent and marked", func() bool { return w.count(`SELECT count(*) FROM postroom_outbox_work`) == 0 })
		sent := r.ids()
		if len(sent) != len(msgs) {
			w.Errorf("%d were sent, want each of %d once", len(sent), len(msgs))
		}
		for g := range groups {
			name := fmt.Sprintf("g%d-", g)
			got := slices.DeleteFunc(slices.Clone(sent), func(id string) bool { return !strings.HasPrefix(id, name) })
			var want []string
			for i := range perGroup {
				want = append(want, fmt.Sprint(name, i))
			}
			equal(w, got, want, "one at a time, in order")
		}
	})
}

func TestAPoisonedHeadHoldsItsGroupAloneVisibly(t *testing.T) {
	onEach(t, outbox.Options{MaxAttempts: 2}, func(w *world) {
		r := &recorder{refuse: func(m *postroom.Message) error {
			if m.ID == "poison" {
				return errors.New("no such exchange")
			}
			return nil
		}}
		w.add(message("poison", "g"), message("behind", "g"), message("elsewhere", "h"), message("free", ""))
		w.send(r)
		others := []string{"elsewhere", "free"}
		equal(w, slices.Sorted(slices.Values(r.ids())), others, "its group waits, and it alone")
		head := func() *outbox.Record {
			rec, err := w.out.Get(w.Context(), "shop", "poison")
			w.must(err)
			return rec
		}
		if rec := head(); rec.State != postroom.StateProcessing || rec.Attempt != 1 || rec.LastError != "no such exchange" {
			w.Errorf("%v after %d attempts with %q, want it to be tried again", rec.State, rec.Attempt, rec.LastError)
		}
		w.advance(time.Minute)
		w.send(r)
		if rec := head(); rec.State != postroom.StateDead || rec.Attempt != 2 || rec.LastError != "no such exchange" {
			w.Errorf("%v after %d attempts with %q, want it Dead at the last", rec.State, rec.Attempt, rec.LastError)
		}
		w.advance(time.Hour)
		w.send(r)
		equal(w, slices.Sorted(slices.Values(r.ids())), others, "the group waits for an operator")
		w.must(w.out.Discard(w.Context(), "shop", "poison", outbox.Order{Actor: "eve"}))
		w.send(r)
		equal(w, slices.Sorted(slices.Values(r.ids())), []string{"behind", "elsewhere", "free"}, "then it goes on")
	})
}

func TestPublishKeepsWhatManyCallersGiveItAtOnce(t *testing.T) {
	const callers = 40
	onEach(t, outbox.Options{}, func(w *world) {
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				if err := w.out.Publish(w.Context(), message(fmt.Sprint(i), "")); err != nil {
					w.Errorf("publish %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		other := message("0", "")
		other.Payload = []byte("something else")
		for _, msgs := range [][]postroom.Message{{other}, {message("with it", ""), other}} {
			var arg *postroom.ArgumentError
			if err := w.out.Publish(w.Context(), msgs...); !errors.As(err, &arg) {
				w.Errorf("%v, want another content under a known id to be refused", err)
			}
		}
		w.must(w.out.Publish(w.Context(), message("0", "")))
		if n := w.kept(); n != callers {
			w.Errorf("%d messages are kept, want %d: a refused call leaves nothing", n, callers)
		}
	})
}

// Package model compares the SQL stores with the one in memory: the same random
// calls on both, and after each of them the same results and the same visible
// state. Where they differ, the transition table says who is wrong.
package model

import (
	"context"
	"time"

	"pgregory.net/rapid"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/tests/stores"
)

// consumers, sources, ids and topics are few, so that calls meet.
var (
	consumers = []string{"a", "b"}
	ids       = []string{"1", "2", "3", "4", "5", "6"}
	topics    = []string{"t", "u"}
)

// All times that a case names are whole minutes: what a slow machine takes for
// a case must never make a difference.
const minute = time.Minute

// A side is one of the two stores, and the moment that its due times count from:
// the last jump in time, so that a repeated message is the same message.
type side struct {
	stores.Open
	now   func() time.Time
	start time.Time
}

// A pair is a store and the model that it is compared with. Each method makes
// one call on both and compares what they give.
type pair struct {
	tb    rapid.TB
	ctx   context.Context
	model side
	store side
	// leases holds what was given out, also what is stale by now, as each of the
	// two stores names it.
	leases []leases
	// reached counts what the case came to: stages, outcomes, errors.
	reached map[string]int
}

type leases struct{ model, store postroom.Lease }

func newPair(tb rapid.TB, model, store stores.Open) *pair {
	var ahead time.Duration
	advance := model.Advance
	model.Advance = func(d time.Duration) { ahead += d; advance(d) }
	p := &pair{
		tb: tb, ctx: context.Background(), reached: map[string]int{},
		model: side{Open: model, now: func() time.Time { return time.Now().Add(ahead) }},
		store: side{Open: store, now: time.Now},
	}
	p.begin()
	return p
}

// begin lets due times count from now.
func (p *pair) begin() { p.model.start, p.store.start = p.model.now(), p.store.now() }

// pass lets time pass.
func (p *pair) pass(d time.Duration) {
	p.model.Advance(d)
	p.store.Advance(d)
	p.begin()
}

// A put as a case names it: due and expires are minutes from the last jump, 0
// for none.
type put struct {
	box.Put
	due, expires int
}

func (s *side) puts(puts []put) []box.Put {
	out := make([]box.Put, len(puts))
	for i, p := range puts {
		out[i] = p.Put
		if p.due != 0 {
			out[i].Message.DueAt = s.start.Add(time.Duration(p.due) * minute)
		}
		if p.expires != 0 {
			out[i].Message.ExpiresAt = s.start.Add(time.Duration(p.expires) * minute)
		}
	}
	return out
}

func (p *pair) put(puts ...put) {
	p.tb.Helper()
	if p.unordered(puts) {
		for i := range puts {
			p.putTx(nil, nil, puts[i:i+1])
		}
	} else {
		p.putTx(nil, nil, puts)
	}
	p.same()
}

// unordered reports whether the turns of a batch may differ: without a group
// there is no order, and a message that is known and becomes ready may take its
// turn behind the new ones of its batch.
func (p *pair) unordered(puts []put) bool {
	for i := range puts {
		if puts[i].Message.Group != "" {
			return false // then the batch keeps its order as a whole
		}
	}
	for i := range puts {
		rec, err := p.model.Store.Get(p.ctx, puts[i].Message.Key())
		if err == nil && rec.State != postroom.StateDone && rec.Stage != postroom.StageReady && rec.Stage != postroom.StageDead {
			return true
		}
	}
	return false
}

func (p *pair) putTx(modelTx, storeTx postroom.Tx, puts []put) {
	p.tb.Helper()
	want, err := p.model.Store.Put(p.ctx, modelTx, p.model.puts(puts))
	p.must(err)
	got, err := p.store.Store.Put(p.ctx, storeTx, p.store.puts(puts))
	p.must(err)
	p.count(len(got), len(want))
	for i := range want {
		p.equal("result of put "+puts[i].Message.ID, p.putResult(&p.store, got[i], modelTx != nil), p.putResult(&p.model, want[i], modelTx != nil))
		p.reached["put "+want[i].Outcome.String()+" "+errorName(want[i].Err)]++
		if want[i].Lease.Seq != 0 {
			p.leases = append(p.leases, leases{want[i].Lease, got[i].Lease})
		}
	}
}

func (p *pair) claim(req box.ClaimRequest) {
	p.tb.Helper()
	want, err := p.model.Store.Claim(p.ctx, req)
	p.must(err)
	got, err := p.store.Store.Claim(p.ctx, req)
	p.must(err)
	p.equal("claimed", p.messages(&p.store, got), p.messages(&p.model, want))
	for i := range want {
		p.leases = append(p.leases, leases{want[i].Lease, got[i].Lease})
	}
	p.same()
}

// A settlement as a case names it: which of the leases.
type settlement struct {
	box.Settlement
	lease   int
	foreign bool
}

func (p *pair) settlements(of func(leases) postroom.Lease, list []settlement) []box.Settlement {
	out := make([]box.Settlement, len(list))
	for i, s := range list {
		out[i] = s.Settlement
		out[i].Lease = p.lease(of, s.lease, s.foreign)
	}
	return out
}

func (p *pair) lease(of func(leases) postroom.Lease, i int, foreign bool) postroom.Lease {
	l := of(p.leases[i])
	if foreign {
		l.Owner = "stranger"
	}
	return l
}

func (p *pair) settle(list ...settlement) {
	p.tb.Helper()
	p.settleTx(nil, nil, list)
	p.same()
}

func (p *pair) settleTx(modelTx, storeTx postroom.Tx, list []settlement) {
	p.tb.Helper()
	want, err := p.model.Store.Settle(p.ctx, modelTx, p.settlements(ofModel, list))
	p.must(err)
	got, err := p.store.Store.Settle(p.ctx, storeTx, p.settlements(ofStore, list))
	p.must(err)
	p.equal("settled", got, want)
}

func ofModel(l leases) postroom.Lease { return l.model }
func ofStore(l leases) postroom.Lease { return l.store }

func (p *pair) extend(d time.Duration, foreign bool, list ...int) {
	p.tb.Helper()
	var forModel, forStore []postroom.Lease
	for _, i := range list {
		forModel = append(forModel, p.lease(ofModel, i, foreign))
		forStore = append(forStore, p.lease(ofStore, i, foreign))
	}
	want, err := p.model.Store.Extend(p.ctx, forModel, d)
	p.must(err)
	got, err := p.store.Store.Extend(p.ctx, forStore, d)
	p.must(err)
	p.count(len(got), len(want))
	for i := range want {
		p.equal("extended", p.extension(&p.store, got[i]), p.extension(&p.model, want[i]))
	}
	p.same()
}

func (p *pair) move(moves ...box.Move) {
	p.tb.Helper()
	want, err := p.model.Store.Move(p.ctx, moves)
	p.must(err)
	got, err := p.store.Store.Move(p.ctx, moves)
	p.must(err)
	p.equal("moved", moveResults(got), moveResults(want))
	p.same()
}

func (p *pair) reap(req box.ReapRequest) {
	p.tb.Helper()
	want, err := p.model.Store.Reap(p.ctx, req)
	p.must(err)
	got, err := p.store.Store.Reap(p.ctx, req)
	p.must(err)
	p.equal("reaped", got, want)
	p.same()
}

func (p *pair) cleanup(req box.CleanupRequest) {
	p.tb.Helper()
	want, err := p.model.Store.Cleanup(p.ctx, req)
	p.must(err)
	got, err := p.store.Store.Cleanup(p.ctx, req)
	p.must(err)
	p.equal("cleaned up", got, want)
	p.same()
}

// pause pauses a topic, or resumes it.
func (p *pair) pause(resume bool, consumer, topic, actor string) {
	p.tb.Helper()
	for _, s := range []*side{&p.model, &p.store} {
		if resume {
			p.must(s.Store.Resume(p.ctx, consumer, topic, actor))
		} else {
			p.must(s.Store.Pause(p.ctx, consumer, topic, actor, "reason"))
		}
	}
	p.same()
}

// transaction does something in a transaction of each, looks at what others see
// meanwhile, and ends it.
func (p *pair) transaction(commit bool, do func(modelTx, storeTx postroom.Tx)) {
	p.tb.Helper()
	modelTx, err := p.model.Store.Begin(p.ctx)
	p.must(err)
	defer func() { _ = modelTx.Rollback(p.ctx) }()
	storeTx, err := p.store.Store.Begin(p.ctx)
	p.must(err)
	defer func() { _ = storeTx.Rollback(p.ctx) }()
	known := len(p.leases)
	do(modelTx, storeTx)
	p.same()
	if commit {
		p.must(modelTx.Commit(p.ctx))
		p.must(storeTx.Commit(p.ctx))
	} else {
		p.must(modelTx.Rollback(p.ctx))
		p.must(storeTx.Rollback(p.ctx))
		p.leases = p.leases[:known]
	}
	p.same()
}

func (p *pair) must(err error) {
	p.tb.Helper()
	if err != nil {
		p.tb.Fatalf("unexpected: %v", err)
	}
}

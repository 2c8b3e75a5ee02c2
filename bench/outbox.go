package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/outbox"
)

// outboxRows are the rows of the outbox: what adding costs a caller, and how fast
// a relay empties it into a sender that does nothing.
func outboxRows(goals ...goal) func(size sizes) []scenario {
	return func(size sizes) []scenario {
		one := func(name string, goals ...goal) []figure { return []figure{{name: name, unit: perSec, goals: goals}} }
		var list []scenario
		for _, callers := range []int{1, 32} {
			name := fmt.Sprintf("add, one per transaction, %d caller", callers)
			if callers > 1 {
				name += "s"
			}
			list = append(list, scenario{figures: one(name), measure: intake(size, callers, 1, false)})
		}
		for _, n := range []int{100, 500} {
			list = append(list, scenario{
				figures: one(fmt.Sprintf("relay to a null sender, batches of %d", n), goals...),
				measure: drain(size, ready, work{concurrency: n}),
			})
		}
		return eachRounds(size, list)
	}
}

// outboxed turns statements on the tables of an inbox into those on the outbox's.
func outboxed(text string) string {
	return strings.NewReplacer("postroom_", "postroom_outbox_", "'bench'", "'"+outbox.Consumer+"'").Replace(text)
}

// outboxSession is an outbox on any store: receiving is adding in a transaction
// of the caller's own, working is relaying.
type outboxSession struct {
	out     *outbox.Outbox
	inTx    func(ctx context.Context, fn func(tx postroom.Tx) error) error
	settled atomic.Pointer[func(n int)]
	release func()
}

func newOutboxSession(store box.Store, inTx func(context.Context, func(postroom.Tx) error) error, release func()) (*outboxSession, error) {
	s := &outboxSession{inTx: inTx, release: release}
	out, err := outbox.New(store, outbox.Options{
		Source: "bench",
		Logger: newLogger(),
		Observer: &postroom.Observer{Settled: func(_ context.Context, e postroom.SettledEvent) {
			if settled := s.settled.Load(); settled != nil && e.Applied && e.State == postroom.StateDone {
				(*settled)(1)
			}
		}},
	})
	s.out = out
	return s, err
}

func (s *outboxSession) close() {
	_ = s.out.Close()
	s.release()
}

func (s *outboxSession) receive(ctx context.Context, m message) error {
	return s.receiveAll(ctx, []message{m})
}

func (s *outboxSession) receiveAll(ctx context.Context, ms []message) error {
	msgs := make([]postroom.Message, len(ms))
	for i, m := range ms {
		msgs[i] = toPostroom(m)
	}
	return s.inTx(ctx, func(tx postroom.Tx) error { return s.out.Add(ctx, tx, msgs...) })
}

func (s *outboxSession) work(ctx context.Context, w work) error {
	s.settled.Store(&w.settled)
	null := postroom.SenderFunc(func(_ context.Context, msgs []*postroom.Message) error {
		for _, m := range msgs {
			w.started(message{id: m.ID, payload: m.Payload})
		}
		return nil
	})
	return outbox.NewRelay(s.out, outbox.To(null), outbox.RelayOptions{Batch: w.concurrency}).Run(ctx)
}

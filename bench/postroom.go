package main

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/inbox"
)

const consumer = "bench"

// newLogger logs as a program would, at the default level, to nowhere.
func newLogger() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// postroomSession is an inbox on any store.
type postroomSession struct {
	in *inbox.Inbox
	// transactional makes a handler that inserts a row in its transaction.
	transactional func(started func(message)) postroom.TxHandler
	settled       atomic.Pointer[func(n int)]
	release       func()
}

func newPostroomSession(store box.Store, transactional func(func(message)) postroom.TxHandler, release func()) (*postroomSession, error) {
	s := &postroomSession{transactional: transactional, release: release}
	in, err := inbox.New(store, consumer, inbox.Options{
		Logger: newLogger(),
		Observer: &postroom.Observer{Settled: func(_ context.Context, e postroom.SettledEvent) {
			if settled := s.settled.Load(); settled != nil && e.Applied && e.State == postroom.StateDone {
				(*settled)(1)
			}
		}},
	})
	s.in = in
	return s, err
}

func (s *postroomSession) close() {
	_ = s.in.Close()
	s.release()
}

func toPostroom(m message) postroom.Message {
	return postroom.Message{Source: "bench", ID: m.id, Topic: "bench", Group: m.group, Payload: m.payload}
}

func (s *postroomSession) receive(ctx context.Context, m message) error {
	_, err := s.in.Receive(ctx, toPostroom(m))
	return err
}

func (s *postroomSession) receiveAll(ctx context.Context, ms []message) error {
	msgs := make([]postroom.Message, len(ms))
	for i, m := range ms {
		msgs[i] = toPostroom(m)
	}
	_, err := s.in.ReceiveAll(ctx, msgs)
	return err
}

func (s *postroomSession) work(ctx context.Context, w work) error {
	s.settled.Store(&w.settled)
	mux := inbox.NewMux()
	var err error
	if w.inserting {
		err = mux.Handle("bench", s.transactional(w.started))
	} else {
		err = mux.HandleFunc("bench", func(_ context.Context, m *postroom.Message) error {
			w.started(message{id: m.ID, payload: m.Payload})
			return nil
		})
	}
	if err != nil {
		return err
	}
	return inbox.NewWorker(s.in, mux, inbox.WorkerOptions{
		Concurrency: w.concurrency,
		Batch:       batch,
		Lease:       w.lease,
	}).Run(ctx)
}

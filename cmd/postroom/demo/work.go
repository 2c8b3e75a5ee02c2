package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/sqlstore"
)

const (
	// slots are the messages that a worker has leases on; that is what a process
	// which dies loses.
	slots = 16
	// patience is how long a handler may take.
	patience = 400 * time.Millisecond
	// effort is about how long it takes, so that messages queue up for it while
	// they are leased.
	effort = 5 * time.Millisecond
)

// work handles messages until the context ends. The effect of a message is a row
// in a table without a unique key: nothing but the inbox keeps it from being
// written twice.
func (t *task) work(ctx context.Context, in *inbox.Inbox, store *Store) error {
	insert := store.SQL("INSERT INTO " + store.Effects + " (consumer, source, id, fence, process) VALUES ($1, $2, $3, $4, $5)")
	mux := inbox.NewMux()
	err := mux.Handle(topic, sqlstore.Handler(func(ctx context.Context, tx *sql.Tx, m *postroom.Message) error {
		say("run")
		if _, err := tx.ExecContext(ctx, insert, m.Consumer, m.Source, m.ID, m.Lease.Fence, os.Getpid()); err != nil {
			return err
		}
		if !rest(ctx, effort/4+rand.N(effort)) { //nolint:gosec // it is a demo
			return ctx.Err()
		}
		// Whatever goes wrong now goes wrong after the effect was written.
		return t.misbehave(ctx, m)
	}))
	if err != nil {
		return err
	}
	worker := inbox.NewWorker(in, mux, inbox.WorkerOptions{
		Concurrency: slots, Batch: slots, Lease: t.Lease,
		Poll: 100 * time.Millisecond, MaxPoll: 400 * time.Millisecond,
		HandlerTimeout: patience, DrainTimeout: t.Lease,
		Backoff: func(attempt int) time.Duration { return time.Duration(attempt) * 300 * time.Millisecond },
	})
	return worker.Run(ctx)
}

var (
	errFailed    = errors.New("the card was declined, for now")
	errMalformed = errors.New("the order has no lines")
)

func (t *task) misbehave(ctx context.Context, m *postroom.Message) error {
	switch t.fault(m.ID, m.Attempt) {
	case fail:
		return errFailed
	case malformed:
		return postroom.Permanent(errMalformed)
	case panics:
		panic("nil order")
	case hang:
		<-ctx.Done()
		return ctx.Err()
	case poison:
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		if err != nil {
			return fmt.Errorf("kill this process: %w", err)
		}
		select {}
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom"
)

// barePoll is how often a loop written by hand looks again, unless this process
// received a message.
const barePoll = 20 * time.Millisecond

// bareStatements are what a loop written by hand does to one database.
type bareStatements interface {
	claim(ctx context.Context, owner string, limit int, lease time.Duration) ([]bareMessage, error)
	settle(ctx context.Context, owner string, seqs []int64) error
	// insertAndSettle is one transaction per message.
	insertAndSettle(ctx context.Context, owner string, m bareMessage) error
	reap(ctx context.Context) error
}

type bareMessage struct {
	message
	seq int64
}

// bareLoops works with so many loops, each of which claims its share of the
// concurrency at once, runs nothing, and settles all of it at once.
func bareLoops(ctx context.Context, b bareStatements, wake <-chan struct{}, loops int, w work) error {
	lease := w.lease
	if lease == 0 {
		lease = 30 * time.Second
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		for every := time.NewTicker(lease / 3); ; {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-every.C:
				if err := b.reap(ctx); err != nil {
					return err
				}
			}
		}
	})
	if w.holding {
		// A loop that got less than its share would not come back for the rest.
		loops = 1
	}
	for range loops {
		group.Go(func() error { return bareLoop(ctx, b, wake, (w.concurrency+loops-1)/loops, lease, w) })
	}
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func bareLoop(ctx context.Context, b bareStatements, wake <-chan struct{}, limit int, lease time.Duration, w work) error {
	owner := postroom.NewID()
	for {
		claimed, err := b.claim(ctx, owner, limit, lease)
		if err != nil {
			return err
		}
		if len(claimed) == 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-wake:
			case <-time.After(barePoll):
			}
			continue
		}
		if w.inserting || w.holding {
			err = bareInserting(ctx, b, owner, claimed, w)
		} else {
			err = bareNothing(ctx, b, owner, claimed, w)
		}
		if err != nil {
			return err
		}
	}
}

func bareNothing(ctx context.Context, b bareStatements, owner string, claimed []bareMessage, w work) error {
	seqs := make([]int64, len(claimed))
	for i, m := range claimed {
		w.started(m.message)
		seqs[i] = m.seq
	}
	if err := b.settle(ctx, owner, seqs); err != nil {
		return err
	}
	w.settled(len(seqs))
	return nil
}

func bareInserting(ctx context.Context, b bareStatements, owner string, claimed []bareMessage, w work) error {
	var group errgroup.Group
	for _, m := range claimed {
		group.Go(func() error {
			w.started(m.message)
			if err := b.insertAndSettle(ctx, owner, m); err != nil {
				return err
			}
			w.settled(1)
			return nil
		})
	}
	return group.Wait()
}

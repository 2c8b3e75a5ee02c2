package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// drain fills the tables with messages, works them off, and gives messages per
// second, from the start of the first to the commit of the last, or to the end
// of the time if that comes first.
func drain(size sizes, kind rows, w work) func(context.Context, system) ([]float64, error) {
	return func(ctx context.Context, s system) ([]float64, error) {
		if err := s.reset(ctx); err != nil {
			return nil, err
		}
		rate, err := drainOnce(ctx, s, size, kind, w)
		return []float64{rate}, err
	}
}

// drainOnce is drain beside whatever is in the tables.
func drainOnce(ctx context.Context, s system, size sizes, kind rows, w work) (float64, error) {
	if err := s.fill(ctx, kind, size.drain); err != nil {
		return 0, err
	}
	out, err := s.open(ctx)
	if err != nil {
		return 0, err
	}
	defer out.close()
	t := newTally(size.drain)
	w.started, w.settled = t.started, t.settled
	stop := background(ctx, func(ctx context.Context) error { return out.work(ctx, w) })
	timeout := time.After(patience + size.drainSpan)
	over := t.over(size.drainSpan)
	select {
	case <-t.full:
	case <-over:
	case <-timeout:
	}
	rate := t.rate()
	if err := stop(); err != nil {
		return 0, fmt.Errorf("work: %w", err)
	}
	// A system that got nothing done has the rate 0: the others shall have theirs.
	return rate, nil
}

// background runs f until stop is called, which gives its error.
func background(ctx context.Context, f func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- f(ctx) }()
	return func() error {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
}

// durability receives and works off messages and gives the bytes that the
// database wrote for each.
func durability(size sizes) func(context.Context, system) ([]float64, error) {
	return func(ctx context.Context, s system) ([]float64, error) {
		if err := s.reset(ctx); err != nil {
			return nil, err
		}
		both, err := s.open(ctx)
		if err != nil {
			return nil, err
		}
		defer both.close()
		n := max(size.drain/4/batch, 1) * batch
		before, err := s.written(ctx)
		if err != nil {
			return nil, err
		}
		for range n / batch {
			if err := both.receiveAll(ctx, newMessages(batch)); err != nil {
				return nil, err
			}
		}
		t := newTally(n)
		stop := background(ctx, func(ctx context.Context) error {
			return both.work(ctx, work{concurrency: 100, started: t.started, settled: t.settled})
		})
		select {
		case <-t.full:
		case <-time.After(time.Minute):
			err = fmt.Errorf("%d of %d were handled in a minute", t.n.Load(), n)
		}
		if err := errors.Join(err, stop()); err != nil {
			return nil, err
		}
		after, err := s.written(ctx)
		return []float64{float64(after-before) / float64(n)}, err
	}
}

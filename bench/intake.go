package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const batch = 500

// intake lets callers receive messages for a while, each the next as soon as
// the last is durable, and gives messages per second.
func intake(size sizes, callers, perCall int, duplicates bool) func(context.Context, system) ([]float64, error) {
	return func(ctx context.Context, s system) ([]float64, error) {
		if err := s.reset(ctx); err != nil {
			return nil, err
		}
		in, err := s.open(ctx)
		if err != nil {
			return nil, err
		}
		defer in.close()
		// Connections are opened and statements prepared before it counts.
		if _, err := receiving(ctx, in, size.span/4, callers, perCall, duplicates); err != nil {
			return nil, err
		}
		rate, err := receiving(ctx, in, size.span, callers, perCall, duplicates)
		return []float64{rate}, err
	}
}

func receiving(ctx context.Context, in session, span time.Duration, callers, perCall int, duplicates bool) (float64, error) {
	group, ctx := errgroup.WithContext(ctx)
	var received atomic.Int64
	begin := time.Now()
	for range callers {
		group.Go(func() error {
			var last message
			for n := 0; n == 0 || time.Since(begin) < span; n++ {
				if perCall > 1 {
					if err := in.receiveAll(ctx, newMessages(perCall)); err != nil {
						return fmt.Errorf("receive %d: %w", perCall, err)
					}
				} else {
					if !duplicates || n%2 == 0 {
						last = newMessage()
					}
					if err := in.receive(ctx, last); err != nil {
						return fmt.Errorf("receive: %w", err)
					}
				}
				received.Add(int64(perCall))
			}
			return nil
		})
	}
	err := group.Wait()
	return float64(received.Load()) / time.Since(begin).Seconds(), err
}

func newMessages(n int) []message {
	ms := make([]message, n)
	for i := range ms {
		ms[i] = newMessage()
	}
	return ms
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// perSecond is how many messages are sent while latency is measured.
const perSecond = 200

// latency sends messages at a steady rate to a worker that is otherwise idle
// and gives the median and the 99th percentile, in milliseconds, from the call
// that receives a message to the start of its handler. When apart, receiver and
// worker know each other only through the database.
func latency(size sizes, apart bool) func(context.Context, system) ([]float64, error) {
	return func(ctx context.Context, s system) ([]float64, error) {
		if err := s.reset(ctx); err != nil {
			return nil, err
		}
		out, err := s.open(ctx)
		if err != nil {
			return nil, err
		}
		defer out.close()
		in := out
		if apart {
			if in, err = s.open(ctx); err != nil {
				return nil, err
			}
			defer in.close()
		}
		return sending(ctx, size, in, out)
	}
}

func sending(ctx context.Context, size sizes, in, out session) ([]float64, error) {
	var mu sync.Mutex
	var ages []time.Duration
	arrived := make(chan struct{}, 1)
	started := func(m message) {
		age, err := m.age()
		if err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		ages = append(ages, age)
		select {
		case arrived <- struct{}{}:
		default:
		}
	}
	stop := background(ctx, func(ctx context.Context) error {
		return out.work(ctx, work{concurrency: 100, started: started, settled: func(int) {}})
	})
	n, err := steadily(ctx, in, size.latency, arrived)
	if err == nil {
		err = await(10*time.Second, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(ages) >= n+1
		})
	}
	if err := errors.Join(err, stop()); err != nil {
		return nil, err
	}
	// The first one found a cold start.
	measured := slices.Sorted(slices.Values(ages[1:]))
	return []float64{milliseconds(percentile(measured, 0.5)), milliseconds(percentile(measured, 0.99))}, nil
}

// steadily sends one message, waits until it is handled, and then sends on
// without waiting.
func steadily(ctx context.Context, in session, span time.Duration, arrived <-chan struct{}) (int, error) {
	if err := in.receive(ctx, newMessage()); err != nil {
		return 0, err
	}
	select {
	case <-arrived:
	case <-time.After(30 * time.Second):
		return 0, errors.New("the first message was not handled within 30 s")
	}
	group, ctx := errgroup.WithContext(ctx)
	tick := time.NewTicker(time.Second / perSecond)
	defer tick.Stop()
	n := max(int(span.Seconds()*perSecond), 5)
	for range n {
		<-tick.C
		group.Go(func() error { return in.receive(ctx, newMessage()) })
	}
	return n, group.Wait()
}

// await asks until the answer is yes.
func await(timeout time.Duration, yes func() bool) error {
	for begin := time.Now(); !yes(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > timeout {
			return fmt.Errorf("waited %s in vain", timeout)
		}
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

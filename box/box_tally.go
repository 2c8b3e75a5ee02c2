package box

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// flushEvery is how long counts gather in memory: a row per name and topic is
// then written twelve times a minute, whatever the load.
const flushEvery = 5 * time.Second

// flushTimeout bounds one write of totals.
const flushTimeout = 5 * time.Second

// A tally gathers counts for the store's running totals. They are written in
// the background, never in a caller's transaction; what a crash takes with it
// is missing from the totals, and from nothing else.
type tally struct {
	store Counter
	log   *slog.Logger

	// flushing holds a token during a write. A mutex would not let go when the
	// context ends, and would stop the clock of tests that own it.
	flushing chan struct{}

	mu     sync.Mutex
	counts map[Count]int64 // keyed by a Count whose N is 0
	timer  *time.Timer     // set while a flush is to come
	closed bool
}

func newTally(store Counter, log *slog.Logger) *tally {
	return &tally{store: store, log: log, flushing: make(chan struct{}, 1), counts: map[Count]int64{}}
}

// add is a map write: the timer exists only while something waits for it, so
// that an idle box runs nothing.
func (t *tally) add(counts ...Count) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range counts {
		n := c.N
		c.N = 0
		t.counts[c] += n
	}
	t.arm()
}

func (t *tally) arm() {
	if t.timer == nil && !t.closed && len(t.counts) > 0 {
		t.timer = time.AfterFunc(flushEvery, t.tick)
	}
}

func (t *tally) tick() {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := t.flush(ctx); err != nil {
		t.log.Warn("totals not written, will try again", "error", err)
	}
}

// flush writes what has gathered. What could not be written gathers on.
func (t *tally) flush(ctx context.Context) error {
	select {
	case t.flushing <- struct{}{}:
		defer func() { <-t.flushing }()
	case <-ctx.Done():
		return fmt.Errorf("write totals: %w", ctx.Err())
	}
	t.mu.Lock()
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	counts := make([]Count, 0, len(t.counts))
	for c, n := range t.counts {
		c.N = n
		counts = append(counts, c)
	}
	clear(t.counts)
	t.mu.Unlock()
	if len(counts) == 0 {
		return nil
	}
	if err := t.store.Count(ctx, counts); err != nil {
		t.add(counts...)
		return fmt.Errorf("write totals: %w", err)
	}
	return nil
}

func (t *tally) close(ctx context.Context) error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	return t.flush(ctx)
}

// count adds n to a running total, if the store keeps them.
func (b *Box) count(topic, name string, n int64) {
	if b.tally != nil {
		b.tally.add(Count{Consumer: b.consumer, Topic: topic, Name: name, N: n})
	}
}

package box

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// wakers are the workers of this process that wait for messages.
type wakers struct {
	mu  sync.Mutex
	all map[*waiter]struct{}
}

// A waiter gets hints that there may be something to claim. Each hint that was
// not read yet stands for all that followed it.
type waiter struct {
	hints chan struct{}
	// full: what the hints are about may have to be made ready first.
	full atomic.Bool
}

// wait subscribes to hints.
func (b *Box) wait() (w *waiter, stop func()) {
	w = &waiter{hints: make(chan struct{}, 1)}
	b.wakers.mu.Lock()
	defer b.wakers.mu.Unlock()
	if b.wakers.all == nil {
		b.wakers.all = map[*waiter]struct{}{}
	}
	b.wakers.all[w] = struct{}{}
	return w, func() {
		b.wakers.mu.Lock()
		defer b.wakers.mu.Unlock()
		delete(b.wakers.all, w)
	}
}

// Wake lets the workers of this process know, and those of others soon.
func (b *Box) Wake() { b.wake(true) }

// wake says besides whether all that is new can be claimed as it is.
func (b *Box) wake(full bool) {
	b.wakeHere(full)
	if w, ok := b.store.(Waker); ok {
		b.distant.wake(func(ctx context.Context) error { return w.Wake(ctx, b.consumer) })
	}
}

// listen lets hints of other processes through until ctx is done.
func (b *Box) listen(ctx context.Context) {
	w, ok := b.store.(Waker)
	if !ok {
		return
	}
	if err := w.Listen(ctx, b.consumer, func() { b.wakeHere(true) }); err != nil {
		b.log.InfoContext(ctx, "no hints from other processes, the worker finds their messages by polling", "reason", err)
	}
}

// distant sends hints to other processes, one at a time: what comes while one is
// on its way is told by the next.
type distant struct {
	mu      sync.Mutex
	sending bool
	again   bool
}

const (
	// A hint costs a commit, and commits with hints wait for each other.
	hintPause = 10 * time.Millisecond
	hintTime  = 5 * time.Second
)

func (d *distant) wake(send func(context.Context) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sending {
		d.again = true
		return
	}
	d.sending = true
	go d.run(send)
}

func (d *distant) run(send func(context.Context) error) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), hintTime)
		_ = send(ctx) // a hint that is lost costs others the time to their next poll
		cancel()
		time.Sleep(hintPause)
		d.mu.Lock()
		if !d.again {
			d.sending = false
			d.mu.Unlock()
			return
		}
		d.again = false
		d.mu.Unlock()
	}
}

func (b *Box) wakeHere(full bool) {
	b.wakers.mu.Lock()
	defer b.wakers.mu.Unlock()
	for w := range b.wakers.all {
		if full {
			w.full.Store(true)
		}
		select {
		case w.hints <- struct{}{}:
		default:
		}
	}
}

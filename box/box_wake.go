package box

import "sync"

// wakers are the workers of this process that wait for messages.
type wakers struct {
	mu  sync.Mutex
	all map[chan struct{}]struct{}
}

// Wait subscribes to hints that there may be something to claim. Each hint that
// was not read yet stands for all that followed it.
func (b *Box) Wait() (hints <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	b.wakers.mu.Lock()
	defer b.wakers.mu.Unlock()
	if b.wakers.all == nil {
		b.wakers.all = map[chan struct{}]struct{}{}
	}
	b.wakers.all[ch] = struct{}{}
	return ch, func() {
		b.wakers.mu.Lock()
		defer b.wakers.mu.Unlock()
		delete(b.wakers.all, ch)
	}
}

func (b *Box) wake() {
	b.wakers.mu.Lock()
	defer b.wakers.mu.Unlock()
	for ch := range b.wakers.all {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

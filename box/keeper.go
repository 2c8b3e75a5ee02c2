package box

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/postroom/postroom"
)

// A Keeper renews the leases of messages that are worked on, in batches, and
// ends the context of each whose lease is lost. One goroutine does it, in Run.
type Keeper struct {
	box   *Box
	lease time.Duration

	mu    sync.Mutex
	holds []*Hold
	// writing counts the open transactions of handlers, which on a serial store
	// replace renewal.
	writing int
	serial  bool
	// trouble is when the store last failed.
	trouble time.Time
}

// A Hold is the leases of one run that a Keeper keeps. They are kept and lost
// together, because the run is one.
type Hold struct {
	leases []postroom.Lease
	ctx    lazyContext
	// until is when the leases end at the latest, by the monotonic clock of this
	// process. It is reckoned from before the call that began the lease, so that
	// it never ends later than the database says.
	until time.Time
	// at is its place among those of the keeper.
	at int
	// final: the last statements of the handler's transaction are in flight, so
	// that it is they that have the row locked.
	final bool
}

// NewKeeper makes a keeper for leases of one duration.
func NewKeeper(b *Box, lease time.Duration) *Keeper {
	s, ok := b.store.(Serial)
	return &Keeper{box: b, lease: lease, serial: ok && s.OneWriter()}
}

// Hold keeps leases from now on. asked is when the call that began them was
// made. The context that it gives ends with postroom.ErrLeaseLost when one does.
func (k *Keeper) Hold(ctx context.Context, asked time.Time, leases ...postroom.Lease) (context.Context, *Hold) {
	h := new(Hold)
	k.keep(ctx, h, asked, leases)
	h.ctx.full() // the parent may be anything
	return &h.ctx, h
}

// keep is Hold by a hold of the caller's, in a context of package context.
func (k *Keeper) keep(ctx context.Context, h *Hold, asked time.Time, leases []postroom.Lease) {
	h.ctx.parent = ctx
	h.leases, h.until = leases, asked.Add(k.lease)
	k.mu.Lock()
	defer k.mu.Unlock()
	h.at = len(k.holds)
	k.holds = append(k.holds, h)
}

// holding reports whether the leases are kept.
func (k *Keeper) holding(h *Hold) bool { return h.at < len(k.holds) && k.holds[h.at] == h }

// forget ends the keeping of leases. The last of all takes its place.
func (k *Keeper) forget(h *Hold) {
	if !k.holding(h) {
		return
	}
	last := len(k.holds) - 1
	k.holds[h.at] = k.holds[last]
	k.holds[h.at].at = h.at
	k.holds[last] = nil
	k.holds = k.holds[:last]
}

// Drop ends the keeping of leases that are settled or given up.
func (k *Keeper) Drop(h *Hold) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forget(h)
	h.ctx.end(context.Canceled)
}

// Lost reports whether a lease has ended, and then ends the context. It is
// asked before a message is settled: a process that was stopped for a while may
// get there before the keeper does.
func (k *Keeper) Lost(h *Hold) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.holding(h) && time.Now().Before(h.until) {
		return false
	}
	k.lose(h)
	return true
}

func (k *Keeper) lose(h *Hold) {
	k.forget(h)
	h.ctx.end(postroom.ErrLeaseLost)
}

// Writing says that a handler's transaction is open, until done is called.
func (k *Keeper) Writing() (done func()) {
	k.add(1)
	return func() { k.add(-1) }
}

func (k *Keeper) add(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.writing += n
}

// Final says whether the last statements of a handler's transaction are in
// flight.
func (k *Keeper) Final(h *Hold, final bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h.final = final
}

// Renew at a third of the lease: two lost round trips must not lose the message.
// The keeper looks twice as often, so that a lease is met soon after its third.
const (
	renewAt = 3
	lookAt  = 6
)

// Run renews until ctx is done.
func (k *Keeper) Run(ctx context.Context) {
	timer := time.NewTimer(k.lease / lookAt)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(k.look(ctx))
	}
}

// look ends what has expired and renews what is due, and gives the time until
// the next look.
func (k *Keeper) look(ctx context.Context) time.Duration {
	now := time.Now()
	due, slack := k.due(now)
	if len(due) > 0 {
		// While the call hangs, nobody watches the leases: it must return before
		// the first of them ends.
		ctx, cancel := context.WithTimeout(ctx, min(k.lease/renewAt, slack))
		k.renew(ctx, due, now)
		cancel()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	wait := k.lease / lookAt
	for _, h := range k.holds {
		wait = min(wait, time.Until(h.until))
	}
	return max(wait, time.Millisecond)
}

// due gives the leases to renew and the time until the first of them ends.
func (k *Keeper) due(now time.Time) (due []*Hold, slack time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	slack = k.lease
	for _, h := range slices.Backward(k.holds) { // what is lost leaves its place to one that was seen
		left := h.until.Sub(now)
		switch {
		case left <= 0:
			k.lose(h)
		case left <= k.lease-k.lease/renewAt:
			due, slack = append(due, h), min(slack, left)
		}
	}
	return due, slack
}

func (k *Keeper) renew(ctx context.Context, due []*Hold, asked time.Time) {
	var leases []postroom.Lease
	for _, h := range due {
		leases = append(leases, h.leases...)
	}
	extensions, err := k.box.Extend(ctx, leases, k.lease)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		if !errors.Is(ctx.Err(), context.Canceled) {
			k.trouble = time.Now()
		}
		switch {
		case k.serial && k.writing > 0:
			// Kept until the next look, when they are due again.
			for _, h := range due {
				h.until = asked.Add(k.lease - k.lease/renewAt)
			}
		case !errors.Is(ctx.Err(), context.Canceled):
			k.box.log.WarnContext(ctx, "leases not renewed, will try again", "messages", len(leases), "error", err)
		}
		return
	}
	for _, h := range due {
		mine := extensions[:len(h.leases)]
		extensions = extensions[len(h.leases):]
		if k.holding(h) {
			k.renewed(h, mine, asked)
		}
	}
}

func (k *Keeper) renewed(h *Hold, extensions []Extension, asked time.Time) {
	doubt := false
	for _, e := range extensions {
		switch {
		case e.Extended, e.Locked && h.final:
		case e.Locked:
			doubt = true // someone else has the row: it is asked for again at the next look
		default:
			k.lose(h)
			return
		}
	}
	if !doubt {
		h.until = asked.Add(k.lease)
	}
}

// troubled reports whether the store failed within the last lease.
func (k *Keeper) troubled() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.trouble.IsZero() && time.Since(k.trouble) < k.lease
}

// note remembers a failure of the store. To have waited in vain for another
// writer is one too: while that lasted, nobody could renew.
func (k *Keeper) note(err error) {
	if err == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.trouble = time.Now()
}

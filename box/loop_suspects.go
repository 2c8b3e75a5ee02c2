package box

import (
	"context"
	"time"
)

// A suspect is a message whose process died repeatedly while it ran. It runs
// alone, so that if it does it again, no neighbour is lost with it.

// suspect claims a suspect for a loop that holds nothing else.
func (l *Loop) suspect(ctx context.Context) {
	l.clearing = time.Time{}
	asked := time.Now()
	msgs, err := l.request(ClaimRequest{Limit: 1, Suspect: true})
	if err != nil {
		l.failed(ctx, err)
	}
	if len(msgs) == 0 {
		return
	}
	l.solo = true
	l.look = lookFull
	l.take(ctx, msgs, asked)
	l.fill()
	l.solo = l.held() > 0 // none if the lease is over by now
}

// suspects keeps a loop that is always busy from never running a suspect. Now
// and then it looks for one, puts it back, and if there was one lets the slots
// empty, for at most a lease: a handler that hangs must not stop the others. It
// reports whether this claim has been used up.
func (l *Loop) suspects(ctx context.Context, now time.Time) bool {
	switch {
	case !l.clearing.IsZero() && l.held() == 0:
		l.suspect(ctx)
		return l.solo
	case !l.clearing.IsZero() && now.After(l.clearing):
		l.clearing = time.Time{}
		return false
	case l.held() == 0 || now.Before(l.probe):
		return false
	}
	l.probe = l.nextProbe()
	msgs, err := l.request(ClaimRequest{Limit: 1, Suspect: true, ReadyOnly: true})
	if err != nil {
		l.failed(ctx, err)
	}
	if len(msgs) == 0 {
		return false
	}
	l.putBack(0, msgs...)
	l.clearing = now.Add(l.opts.Lease)
	l.poll.Reset(l.opts.Lease)
	return true
}

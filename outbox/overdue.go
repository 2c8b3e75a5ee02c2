package outbox

import (
	"context"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// overdueEvery is how often a relay looks for what is overdue at most, and
// overdueMost how much of it one look takes in.
const (
	overdueEvery = time.Minute
	overdueMost  = 10_000
	overduePage  = 1000
)

// watch tells of messages that are overdue, whatever they wait for: a sender
// that fails, the head of their group, or a process that dies of them.
func (r *Relay) watch(ctx context.Context) {
	tick := time.NewTicker(min(max(r.out.opts.Overdue/4, r.opts.Poll), overdueEvery))
	defer tick.Stop()
	known := map[int64]bool{}
	for {
		if now, err := r.out.tell(ctx, known); err == nil {
			known = now
		} else if ctx.Err() == nil {
			r.out.box.Logger().WarnContext(ctx, "overdue messages not looked for, will try again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// tell tells of what is overdue and was not known to be, and gives all of it.
func (o *Outbox) tell(ctx context.Context, known map[int64]bool) (map[int64]bool, error) {
	now := map[int64]bool{}
	for rec, err := range o.overdue(ctx) {
		if err != nil {
			return nil, err
		}
		now[rec.Seq] = true
		if !known[rec.Seq] {
			o.box.Overdue(ctx, rec)
			o.callOnOverdue(ctx, rec)
		}
	}
	return now, nil
}

// callOnOverdue keeps a panic of the hook from ending the relay.
func (o *Outbox) callOnOverdue(ctx context.Context, rec *Record) {
	if o.opts.OnOverdue == nil {
		return
	}
	err := box.Safely(ctx, func(ctx context.Context) error {
		o.opts.OnOverdue(ctx, rec)
		return nil
	})
	if err != nil {
		o.box.Logger().ErrorContext(ctx, "OnOverdue panicked", "error", err)
	}
}

// overdue gives the oldest messages that wait for too long, up to the most that
// one look takes in.
func (o *Outbox) overdue(ctx context.Context) func(yield func(*Record, error) bool) {
	return func(yield func(*Record, error) bool) {
		n := 0
		for rec, err := range o.box.All(ctx, Filter{State: postroom.StateProcessing, Overdue: o.opts.Overdue, Limit: overduePage}) {
			if n++; n > overdueMost || !yield(rec, err) {
				return
			}
		}
	}
}

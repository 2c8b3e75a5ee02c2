package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// A dispatcher is the relay's side of the engine's loop: it gives what was
// claimed to its senders, and says what becomes of each message.
type dispatcher struct {
	out    *Outbox
	opts   RelayOptions
	routes *table
	paused *box.Pauses
}

// parked is the route of messages whose topic is paused.
var parked = &route{pattern: "parked"}

// Refresh reads which topics are paused, at most once per poll.
func (d *dispatcher) Refresh(ctx context.Context) { d.paused.Refresh(ctx) }

// route gives the route of a topic, or nil.
func (d *dispatcher) route(topic string) *route {
	if d.paused.Has(topic) {
		return parked
	}
	r, _ := d.routes.Find(topic)
	return r
}

// Split gives each sender its messages, in the order in which they were claimed,
// a batch at a time.
func (d *dispatcher) Split(msgs []*postroom.Message) []box.Part {
	var parts []box.Part
	at := map[*route]int{}
	for _, m := range msgs {
		r := d.route(m.Topic)
		i, open := at[r]
		if !open || len(parts[i].Messages) >= d.opts.Batch {
			i = len(parts)
			at[r] = i
			parts = append(parts, box.Part{Run: func(ctx context.Context, job *box.Job) { d.run(ctx, job, r) }})
		}
		parts[i].Messages = append(parts[i].Messages, m)
	}
	return parts
}

// errExited is the error of a sender that ended its goroutine.
var errExited = errors.New("outbox: sender ended its goroutine without returning")

// errSlow is the cause of a sender's context that ended because it took too long.
var errSlow = errors.New("sender took too long")

func (d *dispatcher) run(ctx context.Context, job *box.Job, r *route) {
	switch r {
	case parked:
		d.paused.Park(job)
		return
	case nil:
		for _, m := range job.Messages {
			job.End(m, box.Settlement{Verb: box.Fail, Error: d.routes.noRoute(m.Topic)})
		}
		return
	}
	each := postroom.EachOf(errExited, len(job.Messages))
	defer func() {
		for i, m := range job.Messages {
			job.End(m, d.settlement(ctx, r, m, each[i]))
		}
	}()
	limited, cancel := context.WithTimeoutCause(ctx, d.opts.SendTimeout, errSlow)
	defer cancel()
	finish := d.out.box.ObserveBatch(limited, job.Messages, r.pattern)
	err := box.Safely(limited, func(ctx context.Context) error {
		return r.sender.Send(ctx, slices.Clone(job.Messages))
	})
	if err != nil && errors.Is(context.Cause(limited), errSlow) {
		err = slow(err)
	}
	each = postroom.EachOf(err, len(job.Messages))
	finish(each, nil)
}

// slow says why a sender failed, and keeps which messages it had confirmed.
func slow(err error) error {
	var batch postroom.SendErrors
	if !errors.As(err, &batch) {
		return fmt.Errorf("%w: %w", errSlow, err)
	}
	batch = slices.Clone(batch)
	for i, e := range batch {
		if e != nil {
			batch[i] = fmt.Errorf("%w: %w", errSlow, e)
		}
	}
	return batch
}

// settlement decides what becomes of a message by the verdict of its sender.
func (d *dispatcher) settlement(ctx context.Context, r *route, m *postroom.Message, verdict error) box.Settlement {
	s := box.SettlementOf(r.pattern, verdict)
	runs := m.Attempt + 1
	switch {
	case s.Verb == box.Ack:
		s.Forget = d.out.opts.Retention == DeleteSent
	case errors.Is(context.Cause(ctx), box.ErrStopping), errors.Is(context.Cause(ctx), postroom.ErrLeaseLost):
		// It was kept from finishing, which is no failure of its own.
		return box.Settlement{Verb: box.Release}
	case s.Verb == box.Abandon && d.out.opts.MaxAttempts > 0 && runs >= d.out.opts.MaxAttempts:
		s.Verb = box.Fail
	case s.Verb == box.Abandon && s.Delay == 0:
		s.Delay = box.Soon(d.opts.Backoff(runs))
	}
	return s
}

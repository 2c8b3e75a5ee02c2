package inbox

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// A dispatcher is the worker's side of the engine's loop: it finds the handler
// of what was claimed, runs it, and says what becomes of the message.
type dispatcher struct {
	in     *Inbox
	opts   WorkerOptions
	routes *table
	// turn lets one transactional handler at a time run on a serial store; nil
	// on others.
	turn chan struct{}

	paused *box.Pauses
}

func newDispatcher(in *Inbox, o WorkerOptions, routes *table) *dispatcher {
	d := &dispatcher{in: in, opts: o, routes: routes, paused: box.NewPauses(in.box, o.Poll)}
	if serial(in.box.Store()) {
		d.turn = make(chan struct{}, 1)
	}
	return d
}

func serial(s box.Store) bool {
	one, ok := s.(box.Serial)
	return ok && one.OneWriter()
}

// Refresh reads which topics are paused, at most once per poll.
func (d *dispatcher) Refresh(ctx context.Context) { d.paused.Refresh(ctx) }

// pause pauses a topic for all workers, and for this one at once.
func (d *dispatcher) pause(ctx context.Context, topic string, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	return d.paused.Pause(ctx, topic, "worker", cause.Error())
}

// Split gives each message a run of its own, except those of a batch handler,
// which run together, as do those that are not handled at all.
func (d *dispatcher) Split(msgs []*postroom.Message) []box.Part {
	parts := make([]box.Part, 0, len(msgs))
	last := map[*route]int{} // of its parts
	for n, m := range msgs {
		r := d.route(m)
		i, open := last[r]
		if open && r.together() {
			parts[i].Messages = append(parts[i].Messages, m)
			continue
		}
		part := box.Part{Messages: msgs[n : n+1 : n+1]}
		if open {
			part.Run = parts[i].Run
		} else {
			part.Run = func(ctx context.Context, job *box.Job) { d.run(ctx, job, r) }
		}
		last[r] = len(parts)
		parts = append(parts, part)
	}
	return parts
}

// The routes of messages that are not handled.
var (
	unhandled = &route{pattern: "unhandled"}
	parked    = &route{pattern: "parked"}
)

// together tells whether messages of the route share a run.
func (r *route) together() bool { return r.handler == nil }

func (d *dispatcher) route(m *postroom.Message) *route {
	if d.paused.Has(m.Topic) {
		return parked
	}
	if r, found := d.routes.Find(m.Topic); found {
		return r
	}
	return unhandled
}

func (d *dispatcher) run(ctx context.Context, job *box.Job, r *route) {
	switch {
	case r == parked:
		d.paused.Park(job)
	case r == unhandled:
		d.refuse(ctx, job)
	case r.batch != nil:
		d.runTx(ctx, job, r, d.batchCall(r, job.Messages))
	case r.tx != nil:
		d.runTx(ctx, job, r, d.singleCall(r, job.Messages[0]))
	default:
		d.runPlain(ctx, job, r)
	}
}

// The bounds of the delay after which a message without a handler is looked at
// again. It grows with the time that the message has waited, so that it needs no
// counter: in a rolling deploy the right program comes soon.
const (
	minUnhandled = time.Second
	maxUnhandled = time.Minute
)

// refuse releases messages of topics without a handler.
func (d *dispatcher) refuse(ctx context.Context, job *box.Job) {
	topics := map[string]int{}
	for _, m := range job.Messages {
		topics[m.Topic]++
		claimed := m.Lease.Until.Add(-d.opts.Lease)
		job.Release(m, min(max(claimed.Sub(m.FirstSeen), minUnhandled), maxUnhandled))
		d.in.box.Unhandled(ctx, m)
	}
	for topic, n := range topics {
		d.in.box.Logger().WarnContext(ctx, "no handler for topic, messages released", "topic", topic, "messages", n)
	}
}

// errExited is the verdict of a handler that ended its goroutine instead of
// returning, as the Fatal functions of package testing do.
var errExited = errors.New("inbox: handler ended its goroutine without returning")

// runPlain runs a handler that is settled afterwards.
func (d *dispatcher) runPlain(ctx context.Context, job *box.Job, r *route) {
	m := job.Messages[0]
	limited, cancel := d.limit(ctx, r)
	defer cancel()
	verdict := errExited
	defer func() {
		if job.Lost() {
			d.in.box.LogAbout(ctx, slog.LevelWarn, "lease was lost while the handler ran", m)
		}
		job.End(m, d.settlement(limited, r, m, verdict))
	}()
	verdict = d.in.box.Observe(job.About(limited), m, r.opts.Name, func(ctx context.Context) error {
		return r.handler.Handle(ctx, m)
	})
}

// limit ends a context when the handler's time is up.
func (d *dispatcher) limit(ctx context.Context, r *route) (context.Context, context.CancelFunc) {
	timeout := cmp.Or(r.opts.Timeout, d.opts.HandlerTimeout)
	if timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, timeout, errTimeout)
}

package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// GuardOptions of one call of Guard.
type GuardOptions struct {
	// ReleaseOnError returns the message to what it was before when the handler
	// fails or its process dies, so that a redelivery runs it again. Default:
	// the message is Dead then, and redeliveries are not run.
	ReleaseOnError bool
	// Lease is how long the mark outlives a process that dies. It is renewed
	// while the handler runs. Default 30 s.
	Lease time.Duration
	// Handler is the name recorded with the outcome. Default: the name of the
	// function.
	Handler string
}

// DefaultLease is how long a lease lasts unless it is renewed.
const DefaultLease = 30 * time.Second

func (o GuardOptions) defaults() GuardOptions {
	if o.Lease == 0 {
		o.Lease = DefaultLease
	}
	return o
}

// settleTimeout bounds what is written after the caller's context has ended.
const settleTimeout = 5 * time.Second

// Guard marks a message, commits, and then runs a handler, for effects outside
// the database: each message is run at most once, unless ReleaseOnError is set.
// The result is Duplicate, and the handler was not run, when the message is done
// already. postroom.ErrInProgress says that another run is under way,
// postroom.ErrDead that an earlier one failed.
//
// The handler's error is returned after it was recorded: Permanent makes the
// message Dead in any case, Discard makes it Done and gives no error, RetryAfter
// sets the delay of a message that goes back to waiting.
func (in *Inbox) Guard(ctx context.Context, m postroom.Message, handle postroom.HandlerFunc, o GuardOptions) (postroom.Result, error) {
	if handle == nil {
		return refused(&postroom.ArgumentError{Argument: "handler", Reason: "is nil"})
	}
	if o.Handler == "" {
		o.Handler = funcName(handle)
	}
	if in.opts.Disabled {
		if err := handle(ctx, &m); err != nil {
			return refused(err)
		}
		return postroom.Result{Outcome: postroom.Accepted}, nil
	}
	return in.guard(ctx, m, handle, o.defaults(), true)
}

func (in *Inbox) guard(ctx context.Context, m postroom.Message, handle postroom.HandlerFunc, o GuardOptions, observe bool) (postroom.Result, error) {
	p := box.Put{
		Mode: box.Guard, Message: m, Handler: o.Handler,
		Owner: box.NewOwner(), Lease: o.Lease, ReleaseOnError: o.ReleaseOnError,
	}
	if err := in.box.Prepare(&p); err != nil {
		return refused(err)
	}
	asked := time.Now()
	r, err := in.box.Take(ctx, p)
	if err != nil || r.Outcome != postroom.Accepted {
		return r.Result(), err
	}
	msg := &p.Message
	msg.Lease = r.Lease
	keeper := box.NewKeeper(in.box, o.Lease)
	held, stop := keep(ctx, keeper, r.Lease, asked)
	defer stop() // a handler that ends its goroutine must not keep the lease for ever
	run := func(ctx context.Context) error { return handle(ctx, msg) }
	var verdict error
	if observe {
		verdict = in.box.Observe(box.WithMessage(held, msg), msg, o.Handler, run)
	} else {
		verdict = run(held)
	}
	stop()
	return in.guardSettled(ctx, msg, r, o, verdict)
}

// keep renews one lease until stop is called, which may be done twice.
func keep(ctx context.Context, k *box.Keeper, l postroom.Lease, asked time.Time) (held context.Context, stop func()) {
	held, hold := k.Hold(ctx, asked, l)
	renewing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.Run(renewing)
	}()
	return held, func() {
		cancel()
		<-done
		k.Drop(hold)
	}
}

// guardSettled records the verdict, also when the caller has gone.
func (in *Inbox) guardSettled(ctx context.Context, m *postroom.Message, r box.PutResult, o GuardOptions, verdict error) (postroom.Result, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	s := box.SettlementOf(o.Handler, verdict)
	s.Lease = m.Lease
	if s.Discarded {
		verdict = nil
	}
	settled, err := in.box.Settle(ctx, []*box.End{{Settlement: s, Message: m}})
	res := r.Result()
	switch {
	case err == nil && settled[0].Applied:
		res.State = settled[0].State
	case err == nil && settled[0].Locked:
		err = errLocked
	case err == nil:
		err = postroom.ErrLeaseLost
	}
	if err != nil {
		in.box.LogAbout(ctx, slog.LevelError, "outcome of a guarded run not recorded", m, slog.Any("error", err))
		verdict = errors.Join(verdict, fmt.Errorf("record outcome: %w", err))
	}
	if verdict != nil {
		res.Outcome, res.Err = 0, verdict
	}
	return res, verdict
}

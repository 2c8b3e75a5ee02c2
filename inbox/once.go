package inbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// OnceOptions of one call of Once.
type OnceOptions struct {
	// Handler is the name recorded with the outcome. Default: the name of the
	// function.
	Handler string
}

// Once runs a handler in a transaction of the store, in which the message
// becomes Done: both commit or neither. The result is Duplicate, and the handler
// was not run, when the message is done already.
//
// If the handler fails, all is rolled back and its error is returned. A
// Permanent error also makes the message Dead, and a Discard makes it Done
// without the handler's writes, with no error. postroom.ErrUnknown says that the
// answer to the commit was lost. When the database gave the transaction up
// (postroom.ErrRetry), the handler runs again, a few times.
func (in *Inbox) Once(ctx context.Context, m postroom.Message, handle postroom.TxHandlerFunc, o OnceOptions) (postroom.Result, error) {
	if handle == nil {
		return refused(&postroom.ArgumentError{Argument: "handler", Reason: "is nil"})
	}
	if o.Handler == "" {
		o.Handler = funcName(handle)
	}
	for try := 1; ; try++ {
		res, err := in.once(ctx, m, handle, o)
		if try == onceTries || !errors.Is(err, postroom.ErrRetry) || !sleep(ctx, onceDelay(try)) {
			return res, err
		}
	}
}

// onceTries is how often a transaction that the database gave up is repeated.
const onceTries = 5

// onceDelay sets those apart that got in each other's way.
func onceDelay(try int) time.Duration {
	return time.Duration(try) * (5*time.Millisecond + rand.N(10*time.Millisecond)) //nolint:gosec // spreading load needs no secrecy
}

func (in *Inbox) once(ctx context.Context, m postroom.Message, handle postroom.TxHandlerFunc, o OnceOptions) (postroom.Result, error) {
	p := box.Put{Mode: box.Once, Message: m, Handler: o.Handler}
	if err := in.box.Prepare(&p); err != nil && !in.opts.Disabled {
		return refused(err)
	}
	tx, err := in.box.Store().Begin(ctx)
	if err != nil {
		return refused(fmt.Errorf("begin: %w", err))
	}
	defer rollback(ctx, tx)
	r := box.PutResult{Outcome: postroom.Accepted}
	if !in.opts.Disabled {
		r, err = in.box.TakeTx(ctx, tx, &p)
		if r.Seq == 0 {
			return r.Result(), err
		}
	}
	below, committed := box.Committing(withTx(box.WithMessage(ctx, &p.Message), tx))
	run := err == nil && r.Outcome == postroom.Accepted
	if run {
		if verdict := in.box.Observe(below, &p.Message, o.Handler, func(ctx context.Context) error {
			return handle(ctx, tx, &p.Message)
		}); verdict != nil {
			rollback(ctx, tx)
			return in.onceFailed(ctx, m, o, verdict)
		}
	}
	// Without a run there still may be an expired lease that was ended.
	if commitErr := tx.Commit(ctx); commitErr != nil {
		return refused(fmt.Errorf("commit: %w", commitErr))
	}
	committed()
	if !in.opts.Disabled {
		in.box.ReportTaken(ctx, &p, &r, true)
	}
	return r.Result(), err
}

// onceFailed keeps the verdicts that outlast the rolled back transaction, by a
// lease that is ended at once.
func (in *Inbox) onceFailed(ctx context.Context, m postroom.Message, o OnceOptions, verdict error) (postroom.Result, error) {
	v, _, _ := postroom.VerdictOf(verdict)
	if in.opts.Disabled || (v != postroom.VerdictDead && v != postroom.VerdictDiscard) {
		return refused(verdict)
	}
	run := func(context.Context, *postroom.Message) error { return verdict }
	res, err := in.guard(ctx, m, run, GuardOptions{Handler: o.Handler}.defaults(), false)
	if err != nil && !errors.Is(err, verdict) {
		err = errors.Join(verdict, fmt.Errorf("record verdict: %w", err))
	}
	return res, err
}

// OnceTx marks a message as done inside your transaction, and reports whether it
// is the first: then do your work and commit, else skip it. It gives
// postroom.ErrDead and ErrInProgress where the message can't be run now. If it
// fails, roll back. The function that calls it is recorded as the handler.
func (in *Inbox) OnceTx(ctx context.Context, tx postroom.Tx, m postroom.Message) (first bool, err error) {
	if tx == nil {
		return false, &postroom.ArgumentError{Argument: "transaction", Reason: "is nil"}
	}
	if in.opts.Disabled {
		return true, nil
	}
	p := box.Put{Mode: box.Once, Message: m, Handler: callerName(2)}
	r, err := in.box.TakeTx(ctx, tx, &p)
	if r.Seq != 0 {
		in.box.ReportTaken(ctx, &p, &r, false)
	}
	return err == nil && r.Outcome == postroom.Accepted, err
}

func refused(err error) (postroom.Result, error) { return postroom.Result{Err: err}, err }

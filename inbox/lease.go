package inbox

import (
	"context"
	"fmt"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// These are the verbs of a worker, for programs that want a loop of their own.
//
// The single forms fail with postroom.ErrLeaseLost when the lease is no longer
// current. The batch forms leave such leases alone and report which took effect;
// an empty batch does nothing, a nil one is an argument error.

// ClaimOptions say what to claim.
type ClaimOptions struct {
	// Owner names who claims. Required.
	Owner string
	// Lease is for how long. Required; 10 to 300 seconds are recommended.
	Lease time.Duration
	// Limit is how many at most. Required; 1 to 100 are recommended.
	Limit int
	// Suspect asks for one message whose process died repeatedly. Run it while
	// you hold no other lease.
	Suspect bool
}

// Claim leases messages that are ready, at most Limit of them.
func (in *Inbox) Claim(ctx context.Context, o ClaimOptions) ([]*postroom.Message, error) {
	in.box.CheckBatch(ctx, o.Limit)
	return in.box.Claim(ctx, box.ClaimRequest{Owner: o.Owner, Lease: o.Lease, Limit: o.Limit, Suspect: o.Suspect})
}

// Ack says that the run succeeded: the message is Done.
func (in *Inbox) Ack(ctx context.Context, l postroom.Lease) error {
	return single(in.AckAll(ctx, []postroom.Lease{l}))
}

// AckAll is Ack for many.
func (in *Inbox) AckAll(ctx context.Context, ls []postroom.Lease) ([]bool, error) {
	return in.settle(ctx, ls, box.Settlement{Verb: box.Ack})
}

// AckTx is Ack inside your transaction. Make it the last statement before the
// commit: it locks the message. If it fails, roll back.
func (in *Inbox) AckTx(ctx context.Context, tx postroom.Tx, l postroom.Lease) error {
	results, err := in.box.SettleTx(ctx, tx, []*box.End{{Settlement: box.Settlement{Lease: l, Verb: box.Ack}}})
	if err != nil {
		return err
	}
	if !results[0].Applied {
		return postroom.ErrLeaseLost
	}
	return nil
}

// Abandon says that the run failed and that another may succeed: the message
// waits for delay, or for the default backoff when it is 0. The cause, of which
// nil is allowed, is recorded.
func (in *Inbox) Abandon(ctx context.Context, l postroom.Lease, delay time.Duration, cause error) error {
	return single(in.AbandonAll(ctx, []postroom.Lease{l}, delay, cause))
}

// AbandonAll is Abandon for many.
func (in *Inbox) AbandonAll(ctx context.Context, ls []postroom.Lease, delay time.Duration, cause error) ([]bool, error) {
	return in.settle(ctx, ls, box.Settlement{Verb: box.Abandon, Delay: delay, Error: text(cause)})
}

// Fail says that the run failed and that another would too: the message is Dead.
// The cause is recorded and required.
func (in *Inbox) Fail(ctx context.Context, l postroom.Lease, cause error) error {
	return single(in.FailAll(ctx, []postroom.Lease{l}, cause))
}

// FailAll is Fail for many.
func (in *Inbox) FailAll(ctx context.Context, ls []postroom.Lease, cause error) ([]bool, error) {
	if cause == nil {
		return nil, &postroom.ArgumentError{Argument: "cause", Reason: "is nil"}
	}
	return in.settle(ctx, ls, box.Settlement{Verb: box.Fail, Error: text(cause)})
}

// Release gives the message back unrun: it waits again, for delay, at no cost.
func (in *Inbox) Release(ctx context.Context, l postroom.Lease, delay time.Duration) error {
	return single(in.ReleaseAll(ctx, []postroom.Lease{l}, delay))
}

// ReleaseAll is Release for many.
func (in *Inbox) ReleaseAll(ctx context.Context, ls []postroom.Lease, delay time.Duration) ([]bool, error) {
	return in.settle(ctx, ls, box.Settlement{Verb: box.Release, Delay: delay})
}

// Extend lets the lease end d from now instead, and gives it with its new end.
func (in *Inbox) Extend(ctx context.Context, l postroom.Lease, d time.Duration) (postroom.Lease, error) {
	extended, err := in.ExtendAll(ctx, []postroom.Lease{l}, d)
	if err != nil {
		return l, err
	}
	return extended[0].Lease, extended[0].Err
}

// An Extended lease is one that ExtendAll was asked for.
type Extended struct {
	// Lease has its new end when Err is nil.
	Lease postroom.Lease
	// Err is nil, postroom.ErrLeaseLost, or postroom.ErrInProgress when the
	// message is locked by another transaction and the lease is as it was.
	Err error
}

// ExtendAll is Extend for many.
func (in *Inbox) ExtendAll(ctx context.Context, ls []postroom.Lease, d time.Duration) ([]Extended, error) {
	if ls == nil {
		return nil, errNilLeases
	}
	extensions, err := in.box.Extend(ctx, ls, d)
	if err != nil {
		return nil, err
	}
	results := make([]Extended, len(ls))
	for i, e := range extensions {
		results[i].Lease = ls[i]
		switch {
		case e.Extended:
			results[i].Lease.Until = e.Until
		case e.Locked:
			results[i].Err = errLocked
		default:
			results[i].Err = postroom.ErrLeaseLost
		}
	}
	return results, nil
}

// Reap ends the leases that have expired and gives how many there were. A Worker
// does it by itself.
func (in *Inbox) Reap(ctx context.Context) (int, error) { return in.box.Reap(ctx) }

var (
	errNilLeases = &postroom.ArgumentError{Argument: "leases", Reason: "are nil"}
	errLocked    = fmt.Errorf("locked by another transaction: %w", postroom.ErrInProgress)
)

func (in *Inbox) settle(ctx context.Context, ls []postroom.Lease, s box.Settlement) ([]bool, error) {
	if ls == nil {
		return nil, errNilLeases
	}
	ends := make([]*box.End, len(ls))
	for i, l := range ls {
		s.Lease = l
		ends[i] = &box.End{Settlement: s}
	}
	settled, err := in.box.Settle(ctx, ends)
	if err != nil {
		return nil, err
	}
	applied := make([]bool, len(ls))
	for i, r := range settled {
		applied[i] = r.Applied
		if r.Locked {
			err = errLocked
		}
	}
	return applied, err
}

func single(applied []bool, err error) error {
	if err == nil && !applied[0] {
		return postroom.ErrLeaseLost
	}
	return err
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postroom/postroom"
)

// A Mode says how Idempotent admits a message.
type Mode uint8

// The modes of Idempotent.
const (
	// ModeOnce runs the handler in a transaction, which TxFrom gives it.
	ModeOnce Mode = iota
	// ModeGuard marks the message first and then runs the handler.
	ModeGuard
)

// IdempotentOptions of a middleware. The zero value consists entirely of
// defaults.
type IdempotentOptions struct {
	// Mode is ModeOnce or ModeGuard. Default ModeOnce.
	Mode Mode
	// ReleaseOnError is that of GuardOptions. Default false.
	ReleaseOnError bool
	// Lease is that of GuardOptions. Default 30 s.
	Lease time.Duration
	// Handler is the name recorded with outcomes. Default: the name of the
	// function.
	Handler string
}

// A Func handles a message that was consumed elsewhere. Its error says whether
// to acknowledge it: nil yes, any other no.
type Func = func(ctx context.Context, m postroom.Message) error

// Idempotent gives a middleware for programs that consume messages by other
// means: whatever it wraps handles each message once. It acknowledges duplicates
// and messages that are Dead; it passes on postroom.ErrInProgress and
// ErrUnknown, after which the sender tries again.
//
// Messages that were not received but dispatched within the program have no
// delivery to deduplicate: pass them in a context made by Local.
func (in *Inbox) Idempotent(o IdempotentOptions) (func(next Func) Func, error) {
	if o.Mode > ModeGuard {
		return nil, &postroom.ArgumentError{Argument: "Mode", Reason: fmt.Sprintf("is %d, allowed are ModeOnce and ModeGuard", o.Mode)}
	}
	if o.Lease < 0 {
		return nil, &postroom.ArgumentError{Argument: "Lease", Reason: "is negative"}
	}
	return func(next Func) Func {
		name := o.Handler
		if name == "" {
			name = funcName(next)
		}
		return func(ctx context.Context, m postroom.Message) error {
			if in.opts.Disabled || isLocal(ctx) {
				return next(ctx, m)
			}
			return acknowledged(in.admit(ctx, m, next, name, o))
		}
	}, nil
}

func (in *Inbox) admit(ctx context.Context, m postroom.Message, next Func, name string, o IdempotentOptions) error {
	var err error
	if o.Mode == ModeGuard {
		_, err = in.Guard(ctx, m, func(ctx context.Context, m *postroom.Message) error {
			return next(ctx, *m)
		}, GuardOptions{ReleaseOnError: o.ReleaseOnError, Lease: o.Lease, Handler: name})
	} else {
		_, err = in.Once(ctx, m, func(ctx context.Context, _ postroom.Tx, m *postroom.Message) error {
			return next(ctx, *m)
		}, OnceOptions{Handler: name})
	}
	return err
}

// acknowledged turns the refusal of a dead message into success: delivering it
// again would not change anything.
func acknowledged(err error) error {
	if errors.Is(err, postroom.ErrDead) {
		return nil
	}
	return err
}

type localKey struct{}

// Local marks what happens in a context as dispatched within the program, not
// received: Idempotent lets it pass.
func Local(ctx context.Context) context.Context { return context.WithValue(ctx, localKey{}, true) }

func isLocal(ctx context.Context) bool { return ctx.Value(localKey{}) != nil }

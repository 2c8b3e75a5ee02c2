package postroom

import (
	"context"
	"errors"
	"fmt"
)

// A Sender gives messages to a transport: a broker, a webhook, a bus. It is safe
// for concurrent use.
type Sender interface {
	// Send hands messages over, in their order, and returns when the transport
	// has taken over the responsibility for them. nil: for each of them.
	// SendErrors: for those whose error is nil. Any other error: for none, as
	// far as is known.
	//
	// A message's error is a verdict like that of a Handler: Permanent, RetryAfter
	// and Discard say more. What is not confirmed is sent again under the same ID.
	Send(ctx context.Context, msgs []*Message) error
}

// SenderFunc makes a Sender of a function.
type SenderFunc func(ctx context.Context, msgs []*Message) error

// Send calls f.
func (f SenderFunc) Send(ctx context.Context, msgs []*Message) error { return f(ctx, msgs) }

// SendErrors are the errors of a batch, parallel to its messages: nil for each
// message that was confirmed.
type SendErrors []error

// Err gives nil when every message was confirmed, and the errors else.
func (e SendErrors) Err() error {
	if errors.Join(e...) == nil {
		return nil
	}
	return e
}

func (e SendErrors) Error() string {
	failed, first := 0, error(nil)
	for _, err := range e {
		if err != nil {
			if failed++; failed == 1 {
				first = err
			}
		}
	}
	return fmt.Sprintf("%d of %d messages not sent, the first: %v", failed, len(e), first)
}

// Unwrap gives the errors of the messages.
func (e SendErrors) Unwrap() []error {
	var errs []error
	for _, err := range e {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// errMiscounted is the error of each message of a batch whose sender gave another
// number of errors: which was confirmed is not known.
var errMiscounted = errors.New("postroom: sender gave another number of errors than it got messages")

// EachOf gives the error of each of n messages, out of what Send returned.
func EachOf(err error, n int) []error {
	each := make([]error, n)
	var batch SendErrors
	if errors.As(err, &batch) {
		if len(batch) == n {
			return append(each[:0], batch...)
		}
		err = errMiscounted
	}
	for i := range each {
		each[i] = err
	}
	return each
}

// A Receiver takes messages from a transport.
type Receiver interface {
	// Receive gives batches to deliver until ctx is done, then returns nil; it
	// returns an error when it can't go on. It acknowledges to the transport
	// exactly what deliver took in.
	//
	// What it can't decode it delivers as Malformed, and what can't be taken in by
	// OrMalformed: nothing comes again and again for ever.
	Receive(ctx context.Context, deliver Deliver) error
}

// Deliver takes a batch in, as the method ReceiveAll of an inbox does. The
// results run parallel to the messages: those without an error are durable, and
// are to be acknowledged whatever their outcome. A nil error says that all are.
type Deliver func(ctx context.Context, msgs []Message) ([]Result, error)

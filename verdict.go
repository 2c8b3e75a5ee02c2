package postroom

import (
	"errors"
	"time"
)

// A handler's verdict is its error: nil is success, any error is a failure that
// is tried again, and the functions below make errors that say more.

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// Permanent says that another run would fail too: the message is Dead now.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type retryError struct {
	after time.Duration
	err   error
}

func (e *retryError) Error() string { return e.err.Error() }
func (e *retryError) Unwrap() error { return e.err }

// RetryAfter says when to try again, in place of the backoff. A delay that is
// not positive means at once.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &retryError{d, err}
}

type discardError struct{ reason string }

func (e *discardError) Error() string { return "discarded: " + e.reason }

// Discard says that the message needs no effect: it is Done, marked discarded.
func Discard(reason string) error { return &discardError{reason} }

// A Verdict is what an error of a handler asks for.
type Verdict uint8

// The verdicts of a handler.
const (
	VerdictDone Verdict = iota
	VerdictRetry
	VerdictRetryAfter
	VerdictDead
	VerdictDiscard
)

var verdictNames = [...]string{"done", "retry", "retry after", "dead", "discard"}

func (v Verdict) String() string { return nameOf(verdictNames[:], int(v), "verdict") }

// VerdictOf reads the outermost verdict out of an error: the delay belongs to
// VerdictRetryAfter, the reason to VerdictDiscard.
func VerdictOf(err error) (v Verdict, delay time.Duration, reason string) {
	if err == nil {
		return VerdictDone, 0, ""
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		switch e := e.(type) {
		case *permanentError:
			return VerdictDead, 0, ""
		case *retryError:
			return VerdictRetryAfter, max(e.after, 0), ""
		case *discardError:
			return VerdictDiscard, 0, e.reason
		}
	}
	return joinedVerdict(err)
}

// joinedVerdict looks into errors.Join and fmt.Errorf with several %w, where
// errors.Unwrap stops.
func joinedVerdict(err error) (Verdict, time.Duration, string) {
	var (
		p *permanentError
		r *retryError
		d *discardError
	)
	switch {
	case errors.As(err, &p):
		return VerdictDead, 0, ""
	case errors.As(err, &r):
		return VerdictRetryAfter, max(r.after, 0), ""
	case errors.As(err, &d):
		return VerdictDiscard, 0, d.reason
	}
	return VerdictRetry, 0, ""
}

package postroom

import (
	"context"
	"time"
)

// An Observer is told what happens to messages, for metrics and traces. Set the
// functions that you need. They are called on the way of the message: they must
// be quick and safe for concurrent use, and must not change what they are given.
type Observer struct {
	// Received: a message was taken in by Receive, Once or Guard, or refused.
	Received func(context.Context, ReceivedEvent)
	// Claimed: a worker asked the store for messages.
	Claimed func(context.Context, ClaimedEvent)
	// Started: a handler is about to run. It runs in the context that is
	// returned, which therefore can carry a span.
	Started func(context.Context, StartedEvent) context.Context
	// Finished: a handler returned. The context is the one that Started gave.
	Finished func(context.Context, FinishedEvent)
	// Settled: the end of a lease was committed, or came too late.
	Settled func(context.Context, SettledEvent)
	// Lost: a lease ended by itself. Its process died or could not renew it.
	Lost func(context.Context, LostEvent)
	// Died: a message became Dead, which was committed.
	Died func(context.Context, DiedEvent)
	// Unhandled: a message was released because its topic has no handler.
	Unhandled func(context.Context, StartedEvent)
	// CleanedUp: a batch of what was past its retention was removed.
	CleanedUp func(context.Context, CleanedUpEvent)
}

// A Scope says whose event it is.
type Scope struct {
	Store, Consumer string
}

// ReceivedEvent is one message at intake.
type ReceivedEvent struct {
	Scope
	Message *Message
	Result  Result
	// Mode is "queue", "once", "guard" or "check".
	Mode string
}

// ClaimedEvent is one claim.
type ClaimedEvent struct {
	Scope
	Asked, Got int
	Took       time.Duration
	Err        error
}

// StartedEvent is the beginning of a run.
type StartedEvent struct {
	Scope
	Message *Message
	Handler string
}

// FinishedEvent is the end of a run.
type FinishedEvent struct {
	Scope
	Message *Message
	Handler string
	Verdict Verdict
	Err     error
	Took    time.Duration
}

// SettledEvent is the end of a lease.
type SettledEvent struct {
	Scope
	// Message is nil when only its lease was known.
	Message *Message
	// Verb is "ack", "abandon", "fail", "release", "expire" or "park".
	Verb string
	// Applied is false when the lease was no longer current.
	Applied    bool
	State      State
	Superseded bool
}

// LostEvent is a lease that expired.
type LostEvent struct {
	Scope
	Key   Key
	Topic string
	// Lost is how many in a row, when that is known.
	Lost int
}

// DiedEvent is a message that became Dead.
type DiedEvent struct {
	Scope
	Key   Key
	Topic string
	Error string
	// Message is nil when it died without having been claimed by this process.
	Message *Message
}

// CleanedUpEvent is one batch of a cleanup.
type CleanedUpEvent struct {
	Scope
	Payloads, Records int
	Took              time.Duration
}

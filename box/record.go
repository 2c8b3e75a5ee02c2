package box

import (
	"time"

	"github.com/postroom/postroom"
)

// A Record is all that is known of a message.
type Record struct {
	postroom.Message
	Seq   int64
	State postroom.State
	// Stage says more of a live message.
	Stage postroom.Stage
	// NextAt is when a waiting message can run. Zero: at once.
	NextAt time.Time
	// Lost is how many leases in a row were lost.
	Lost int
	// Guard is the mode of a guarded lease.
	Guard GuardMode
	// Done is the outcome of a message whose state is Done.
	Done Done
}

// A Filter selects messages. Zero fields select all.
type Filter struct {
	Consumer string
	State    postroom.State
	Topic    string
	Source   string
	Group    string
	// DoneFrom and DoneUntil bound when a message was done; the first is part of
	// what is selected, the second is not. Only with StateDone.
	DoneFrom, DoneUntil time.Time
	// Overdue selects what has waited for longer than this, by the store's clock,
	// since it was received or fell due. Only with StateProcessing.
	Overdue time.Duration
	// After continues a listing behind the Seq of its last record.
	After int64
	// Limit is how many are given at most. Default 100, at most 1,000.
	Limit int
	// WithPayload includes payloads and headers.
	WithPayload bool
}

// An AuditFilter selects operator actions.
type AuditFilter struct {
	Consumer string
	// Before continues a listing before the Entry of its last record. 0: from
	// the newest.
	Before int64
	// Limit is how many are given at most. Default 100.
	Limit int
}

// An AuditEntry is one action of an operator.
type AuditEntry struct {
	Entry         int64
	At            time.Time
	Actor, Reason string
	Action        string
	Key           postroom.Key
	// Detail is what the action was done to besides a message: a topic.
	Detail string
}

// A CleanupRequest asks to remove one batch of what is past its retention.
type CleanupRequest struct {
	Consumer string
	// Payloads and Records are the ages, since the message was done, at which
	// its payload is emptied and at which it is forgotten. 0: never.
	Payloads, Records time.Duration
	// Limit is how many messages are changed at most. Default 1,000.
	Limit int
}

// A CleanupResult says what one batch removed.
type CleanupResult struct {
	Payloads, Records int
	// More: the batch was full; there may be more to do.
	More bool
}

// A Count adds N to a running total of a consumer and topic.
type Count struct {
	Consumer, Topic, Name string
	N                     int64
}

// Names of running totals.
const (
	CountAccepted   = "accepted"
	CountDuplicate  = "duplicate"
	CountReplaced   = "replaced"
	CountConflict   = "conflict"
	CountDone       = "done"
	CountDead       = "dead"
	CountLost       = "lost"
	CountUnhandled  = "unhandled"
	CountSuperseded = "superseded"
	CountOverdue    = "overdue"
)

// Stats is an overview of a box.
type Stats struct {
	// Live counts the live messages by topic and stage.
	Live []LiveCount
	// Totals are the running totals.
	Totals []Count
	// OldestWaiting is when the ready message that has waited longest was first
	// seen. Zero: none is ready.
	OldestWaiting time.Time
	// Tables are the sizes, by the database's own estimate where it has one.
	Tables []TableSize
	// Now is the database's clock.
	Now time.Time
}

// A LiveCount counts live messages.
type LiveCount struct {
	Consumer, Topic string
	Stage           postroom.Stage
	N               int64
}

// A TableSize is the size of a table with its indexes.
type TableSize struct {
	Table       string
	Rows, Bytes int64
	// Estimated: Rows is the database's estimate.
	Estimated bool
}

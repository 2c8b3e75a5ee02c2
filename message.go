package postroom

import (
	"encoding/json"
	"fmt"
	"time"
)

// A Message is what arrives, is worked on, and leaves. The first part is set by
// whoever sends it; the second part is set on delivery and ignored on intake.
type Message struct {
	// Source names the system that sent the message and namespaces its ID.
	// 1 to 255 characters. Receivers without a source use a fixed one.
	Source string
	// ID identifies the message within its source. 1 to 255 characters.
	ID string
	// Topic chooses the handler. 1 to 255 characters, case-sensitive.
	Topic string
	// Payload is never interpreted. It may be empty, but not nil, when the
	// message is to be handled later.
	Payload []byte
	// Headers travel with the message; W3C trace context lives here, as
	// traceparent and tracestate.
	Headers map[string]string
	// Hash identifies the content, so that one ID with two contents is noticed.
	// Optional.
	Hash []byte
	// HashAlg names the algorithm of Hash. Default, when Hash is set: "sha256".
	HashAlg string
	// Group orders messages: those of one group run one at a time, in order of
	// arrival. Empty: no order. At most 255 characters.
	Group string
	// DueAt holds the message back until then. Zero: at once.
	DueAt time.Time
	// ExpiresAt makes the message Dead, unrun, when it was not handled by then.
	// Zero: never.
	ExpiresAt time.Time
	// OccurredAt is when the fact behind the message happened. Zero: unknown.
	OccurredAt time.Time
	// CorrelationID is shared by all messages of one conversation.
	CorrelationID string
	// CausationID is the ID of the message that led to this one.
	CausationID string
	// Malformed is why a Receiver could not decode the message, which is Dead from
	// the start. See the function of that name. Empty: it was decoded.
	Malformed string

	// Consumer is the inbox that the message belongs to.
	Consumer string
	// Attempt counts the runs that ended without success.
	Attempt int
	// Revision counts the contents that were received under this key, from 1.
	Revision int
	// FirstSeen and LastSeen are times of the database's clock. LastSeen is
	// brought up to date at most once a second.
	FirstSeen, LastSeen time.Time
	// LastError is what the last run ended with.
	LastError string
	// Lease is the right to work on the message; zero when nobody has it.
	Lease Lease
}

// Key is the natural key of a message: within a consumer, source and ID name it.
func (m *Message) Key() Key { return Key{Consumer: m.Consumer, Source: m.Source, ID: m.ID} }

// A Lease is the right to work on one message for a while. Only the holder of
// the current lease can settle the message: every claim increases the fence.
type Lease struct {
	// Seq is the store's number of the message.
	Seq int64
	// Owner is the process or worker that holds the lease.
	Owner string
	// Fence tells this lease from earlier and later ones on the same message.
	Fence int64
	// Revision is the content that was delivered with the lease.
	Revision int
	// Until is when the lease ends unless it is extended, by the database's clock.
	Until time.Time
}

// JSON makes a message of a topic and a value, under a new time-ordered ID.
func JSON(topic string, v any) (Message, error) {
	payload, err := json.Marshal(v)
	if err != nil {
		return Message{}, fmt.Errorf("encode payload of topic %q: %w", topic, err)
	}
	return Message{ID: NewID(), Topic: topic, Payload: payload}, nil
}

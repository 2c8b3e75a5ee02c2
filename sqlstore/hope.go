package sqlstore

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom"
)

// hopeless is how long duplicates are expected after one.
const hopeless = time.Minute

// A hope is whether messages that arrive are expected to be new. A statement for
// new ones is cheaper, but a single duplicate fails it, and servers log that: so
// it is used after a minute without any.
type hope struct{ dashed atomic.Pointer[time.Time] }

func (h *hope) fresh() bool {
	at := h.dashed.Load()
	return at == nil || time.Since(*at) >= hopeless
}

// dash says that there was a duplicate.
func (h *hope) dash() {
	now := time.Now()
	h.dashed.Store(&now)
}

// hopes reports whether the statements for new messages may be used, which may
// fail: they take those of one consumer.
func (s *Store) hopes(round []intake) bool {
	d, ok := s.db.(Discreet)
	return ok && d.Discreet() && (&session{store: s}).single("receive_new") && s.hope.fresh() &&
		!slices.ContainsFunc(round, func(in intake) bool { return in.put.Message.Consumer != round[0].put.Message.Consumer })
}

// receiveNew is receive by the statements for new messages.
func (s *Store) receiveNew(ctx context.Context, round []intake) error {
	name, rows := newRows(round)
	return s.one(ctx, "put", func(q *session) error {
		_, err := q.receive(ctx, name, rows, round, round[0].put.Message.Consumer)
		return err
	})
}

// newRows are the rows of such a statement, in the order of the batch.
func newRows(round []intake) (name string, rows [][]any) {
	name, width := "receive_new", 13
	if !slices.ContainsFunc(round, func(in intake) bool { return !plain(&in.put.Message) }) {
		name, width = "receive_new_plain", 5
	}
	var source, topic boxed
	rows = make([][]any, len(round))
	values := make([]any, 0, width*len(round))
	for i, in := range round {
		m := &in.put.Message
		values = append(values, source.of(m.Source), m.ID, topic.of(m.Topic), bytesValue(m.Payload), bytesValue(in.put.Digest()))
		if width > 5 {
			values = append(
				values, headersText(m.Headers), bytesValue(m.Hash), textValue(m.HashAlg),
				timeValue(m.DueAt), timeValue(m.ExpiresAt), timeValue(m.OccurredAt), textValue(m.CorrelationID), textValue(m.CausationID),
			)
		}
		rows[i] = values[width*i : len(values) : len(values)]
	}
	return name, rows
}

// plain tells whether a message has nothing but a topic and a payload.
func plain(m *postroom.Message) bool {
	return len(m.Headers) == 0 && m.Hash == nil && m.HashAlg == "" && m.CorrelationID == "" && m.CausationID == "" &&
		m.DueAt.IsZero() && m.ExpiresAt.IsZero() && m.OccurredAt.IsZero()
}

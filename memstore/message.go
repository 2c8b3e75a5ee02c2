package memstore

import (
	"bytes"
	"maps"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// A message is what arrived. Its slices and maps are never changed in place.
type message struct {
	key           postroom.Key
	topic, group  string
	payload       []byte
	headers       map[string]string
	hash          []byte
	hashAlg       string
	digest        []byte
	dueAt         time.Time
	expiresAt     time.Time
	occurredAt    time.Time
	correlationID string
	causationID   string
	revision      int
	firstSeen     time.Time
}

// intake prepares a put: its times as the store keeps them.
func intake(p box.Put) box.Put {
	m := &p.Message
	m.DueAt, m.ExpiresAt, m.OccurredAt = instant(m.DueAt), instant(m.ExpiresAt), instant(m.OccurredAt)
	return p
}

// newMessage makes the row of a message that was not known. A lookup leaves its
// key and its hash, and no content.
func newMessage(p *box.Put, now time.Time) message {
	row := message{key: p.Message.Key(), revision: 1, firstSeen: now}
	row.adoptHash(p)
	if p.Mode != box.Check {
		row.setContent(p, 1)
		row.group = p.Message.Group
	}
	return row
}

// setContent makes the content that of the put, and with it the hash; the group
// stays.
func (row *message) setContent(p *box.Put, revision int) {
	m := &p.Message
	row.topic = m.Topic
	row.payload = bytes.Clone(m.Payload)
	row.headers = nil
	if len(m.Headers) > 0 {
		row.headers = maps.Clone(m.Headers)
	}
	row.dueAt, row.expiresAt, row.occurredAt = m.DueAt, m.ExpiresAt, m.OccurredAt
	row.correlationID, row.causationID = m.CorrelationID, m.CausationID
	row.digest = p.Digest()
	row.revision = revision
	row.hash, row.hashAlg = nil, ""
	row.adoptHash(p)
}

func (row *message) adoptHash(p *box.Put) {
	if m := &p.Message; len(m.Hash) > 0 {
		row.hash, row.hashAlg = bytes.Clone(m.Hash), m.HashAlg
	}
}

// delivery makes the message that callers get. They may do with it as they like.
func (row *message) delivery(w *box.Work, withPayload bool) *postroom.Message {
	m := &postroom.Message{
		Consumer: row.key.Consumer, Source: row.key.Source, ID: row.key.ID,
		Topic: row.topic, Group: row.group,
		Hash: bytes.Clone(row.hash), HashAlg: row.hashAlg,
		DueAt: row.dueAt, ExpiresAt: row.expiresAt, OccurredAt: row.occurredAt,
		CorrelationID: row.correlationID, CausationID: row.causationID,
		Revision: row.revision, FirstSeen: row.firstSeen,
	}
	if withPayload {
		m.Payload, m.Headers = bytes.Clone(row.payload), maps.Clone(row.headers)
	}
	if w != nil {
		m.Attempt, m.LastError, m.LastSeen = w.Attempt, w.LastError, w.LastSeen
		if w.Stage == postroom.StageLeased {
			m.Lease = w.Lease()
		}
	}
	return m
}

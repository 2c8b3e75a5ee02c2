package postroom

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
)

// unreadable stands for the source or topic of a message where it can't be read.
const unreadable = "malformed"

// Malformed makes of what a Receiver can't decode a message that an inbox takes
// in: it is Dead from the start, with the error as its reason, so that it can be
// acknowledged, looked at and requeued, instead of coming again and again.
//
// m holds what could be read, and as its payload the delivery as it came. What
// can't be used is left out. An ID that is missing or can't be used becomes a
// hash of the payload: the same bytes are the same message.
func Malformed(m Message, err error) Message {
	reason := "malformed"
	if err != nil {
		reason = cmp.Or(ErrorText(err.Error()), reason)
	}
	bare := Message{Source: m.Source, ID: m.ID, Topic: m.Topic, Payload: m.Payload, Malformed: reason}
	if bare.Payload == nil {
		bare.Payload = []byte{}
	}
	if checkName("topic", bare.Topic, true) != nil {
		bare.Topic = unreadable
	}
	if checkName("source", bare.Source, true) != nil {
		bare.Source = unreadable
	}
	if (Key{Consumer: unreadable, Source: bare.Source, ID: bare.ID}).Validate() != nil {
		sum := sha256.Sum256(bare.Payload)
		bare.ID = "sha256:" + hex.EncodeToString(sum[:])
	}
	if (Key{Consumer: unreadable, Source: bare.Source, ID: bare.ID}).Validate() != nil {
		bare.Source = unreadable
	}
	whole := bare
	whole.Consumer = unreadable
	whole.Headers, whole.Hash, whole.HashAlg = m.Headers, m.Hash, m.HashAlg
	whole.OccurredAt, whole.CorrelationID, whole.CausationID = m.OccurredAt, m.CorrelationID, m.CausationID
	if whole.Validate(true, MaxPayloadLimit+len(whole.Payload)) != nil {
		return bare
	}
	whole.Consumer = ""
	return whole
}

// OrMalformed delivers, and delivers once more as Malformed what could be decoded
// but can't be taken in, however often it comes: an ID that is too long, a payload
// that is too large. A Receiver gives it the batches that it would give d.
func (d Deliver) OrMalformed(ctx context.Context, msgs []Message) ([]Result, error) {
	results, err := d(ctx, msgs)
	if err == nil || len(results) != len(msgs) {
		return results, err
	}
	var (
		refused []Message
		at      []int
		left    []error
	)
	for i := range results {
		var arg *ArgumentError
		switch reason := results[i].Err; {
		case errors.As(reason, &arg) && msgs[i].Malformed == "":
			refused, at = append(refused, Malformed(msgs[i], reason)), append(at, i)
		case reason != nil:
			left = append(left, reason)
		}
	}
	if len(refused) == 0 {
		return results, err
	}
	again, err := d(ctx, refused)
	for j, i := range at {
		results[i] = Result{Err: err}
		if j < len(again) {
			results[i] = again[j]
		}
	}
	return results, errors.Join(append(left, err)...)
}

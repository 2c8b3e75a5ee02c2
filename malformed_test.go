package postroom_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom"
)

func TestMalformedMakesAMessageThatAnInboxCanTakeIn(t *testing.T) {
	long := strings.Repeat("é", 300)
	for name, m := range map[string]postroom.Message{
		"nothing could be read":  {},
		"only the payload":       {Payload: []byte("{")},
		"an id that is too long": {Source: "shop", ID: long, Topic: "t", Payload: []byte("x")},
		"no text at all":         {Source: "\xff", ID: "\x00", Topic: "\xfe", Payload: []byte{0xff}},
		"a key that is too long": {Source: strings.Repeat("😀", 255), ID: strings.Repeat("😀", 255), Topic: "t", Payload: []byte("x")},
		"headers that are none":  {Source: "shop", ID: "1", Topic: "t", Payload: []byte("x"), Headers: map[string]string{"": "\xff"}},
		"a time that is none":    {Source: "shop", ID: "1", Topic: "t", Payload: []byte("x"), OccurredAt: time.Date(99999, 1, 1, 0, 0, 0, 0, time.UTC)},
		"a long payload":         {Source: "shop", ID: "1", Topic: "t", Payload: make([]byte, postroom.MaxPayloadLimit+1)},
	} {
		t.Run(name, func(t *testing.T) {
			got := postroom.Malformed(m, errors.New("no JSON"))
			if got.Malformed != "no JSON" {
				t.Errorf("the reason is %q", got.Malformed)
			}
			got.Consumer = "orders"
			if err := got.Validate(true, max(len(m.Payload), 1)); err != nil {
				t.Error(err)
			}
			if string(got.Payload) != string(m.Payload) {
				t.Error("the delivery is not kept as it came")
			}
		})
	}
	whole := postroom.Message{Source: "shop", ID: "1", Topic: "t", Payload: []byte("{"), Headers: map[string]string{"a": "b"}, CorrelationID: "c"}
	if got := postroom.Malformed(whole, errors.New("no JSON")); got.ID != "1" || got.Source != "shop" || got.Topic != "t" || got.Headers["a"] != "b" || got.CorrelationID != "c" {
		t.Errorf("%+v, want all that could be read", got)
	}
	if postroom.Malformed(postroom.Message{}, nil).Malformed == "" {
		t.Error("without a reason it would be handled")
	}
}

func TestMalformedGivesTheSameBytesTheSameID(t *testing.T) {
	id := func(payload string) string {
		return postroom.Malformed(postroom.Message{Payload: []byte(payload)}, errors.New("?")).ID
	}
	first, again, other := id("{"), id("{"), id("[")
	if first != again || first == other {
		t.Errorf("%q, %q, and of other bytes %q", first, again, other)
	}
}

func TestOrMalformedDeliversAgainOnlyWhatCanNeverBeTakenIn(t *testing.T) {
	errBusy := errors.New("database is busy")
	var taken []postroom.Message
	deliver := postroom.Deliver(func(_ context.Context, msgs []postroom.Message) ([]postroom.Result, error) {
		results := make([]postroom.Result, len(msgs))
		var errs []error
		for i, m := range msgs {
			switch {
			case m.ID == "busy":
				results[i].Err = errBusy
			case m.ID == "refused" && m.Malformed == "":
				results[i].Err = &postroom.ArgumentError{Argument: "payload", Reason: "is too large"}
			default:
				results[i].Outcome = postroom.Accepted
				taken = append(taken, m)
			}
			errs = append(errs, results[i].Err)
		}
		return results, errors.Join(errs...)
	})
	send := func(ids ...string) ([]postroom.Result, error) {
		taken = nil
		var msgs []postroom.Message
		for _, id := range ids {
			msgs = append(msgs, postroom.Message{Source: "shop", ID: id, Topic: "t", Payload: []byte("x")})
		}
		return deliver.OrMalformed(t.Context(), msgs)
	}
	results, err := send("a", "refused", "b")
	if err != nil || len(taken) != 3 || taken[2].ID != "refused" || !strings.Contains(taken[2].Malformed, "payload is too large") {
		t.Errorf("took %+v, %v", taken, err)
	}
	for i, r := range results {
		if r.Err != nil || r.Outcome == 0 {
			t.Errorf("result %d is %+v, want it to be acknowledged", i, r)
		}
	}
	results, err = send("a", "refused", "busy")
	if !errors.Is(err, errBusy) || results[0].Err != nil || results[1].Err != nil || !errors.Is(results[2].Err, errBusy) {
		t.Errorf("%+v, %v, want only what may be taken in later to fail", results, err)
	}
}

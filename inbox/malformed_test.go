package inbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
)

func TestAMalformedMessageIsDeadWithItsReasonAndNeverRuns(t *testing.T) {
	var dead []postroom.DiedEvent
	f := open(t, inbox.Options{MaxPayload: 20, OnDead: func(_ context.Context, e postroom.DiedEvent) { dead = append(dead, e) }})
	raw := postroom.Message{Source: "broker", Topic: "order.paid", Payload: []byte("{ not JSON")}
	bad := postroom.Malformed(raw, errors.New("unexpected end"))
	large := postroom.Malformed(postroom.Message{Source: "broker", ID: "large", Payload: make([]byte, 50)}, errors.New("no header"))
	good := postroom.Message{Source: "broker", ID: "good", Topic: "order.paid", Payload: []byte("{}")}
	for range 2 {
		results, err := f.ReceiveAll(t.Context(), []postroom.Message{bad, good, large})
		ok(t, err)
		if results[0].Outcome != postroom.Dead || results[0].State != postroom.StateDead {
			t.Errorf("%+v, want it to be acknowledged as dead", results[0])
		}
	}
	if len(dead) != 2 || dead[0].Error != "unexpected end" {
		t.Errorf("OnDead got %+v, want each death once", dead)
	}
	var ran []string
	mux := handling(func(_ context.Context, m *postroom.Message) error {
		ran = append(ran, string(m.Payload))
		return nil
	})
	ok(t, inbox.NewWorker(f.Inbox, mux, inbox.WorkerOptions{}).RunUntilIdle(t.Context()))
	if len(ran) != 1 || ran[0] != "{}" {
		t.Errorf("handled %q, want the good one alone", ran)
	}
	rec, err := f.Get(t.Context(), "broker", bad.ID)
	ok(t, err)
	if rec.LastError != "unexpected end" || string(rec.Payload) != "{ not JSON" {
		t.Errorf("%q with %q", rec.LastError, rec.Payload)
	}
	rec, err = f.Get(t.Context(), "broker", "large")
	ok(t, err)
	if len(rec.Payload) != 20 || !strings.Contains(rec.LastError, "payload of 50 bytes was cut to 20; no header") {
		t.Errorf("%d bytes, %q", len(rec.Payload), rec.LastError)
	}
	ok(t, f.Requeue(t.Context(), "broker", bad.ID, inbox.Order{Actor: "ann"}))
	ok(t, inbox.NewWorker(f.Inbox, mux, inbox.WorkerOptions{}).RunUntilIdle(t.Context()))
	if len(ran) != 2 || ran[1] != "{ not JSON" {
		t.Errorf("handled %q, want the bytes as they came after a requeue", ran)
	}
}

func TestAMalformedMessageCanOnlyBeReceived(t *testing.T) {
	f := open(t, inbox.Options{})
	bad := postroom.Malformed(postroom.Message{Source: "broker", ID: "1", Topic: "t", Payload: []byte("{")}, errors.New("no JSON"))
	tx, err := f.store.Begin(t.Context())
	ok(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	run := func(context.Context, *postroom.Message) error { t.Error("it ran"); return nil }
	_, received := f.ReceiveTx(t.Context(), tx, bad)
	_, guarded := f.Guard(t.Context(), bad, postroom.HandlerFunc(run), inbox.GuardOptions{})
	for name, err := range map[string]error{"ReceiveTx": received, "Guard": guarded} {
		var arg *postroom.ArgumentError
		if !errors.As(err, &arg) || !strings.Contains(err.Error(), "is malformed") {
			t.Errorf("%s gave %v", name, err)
		}
	}
}

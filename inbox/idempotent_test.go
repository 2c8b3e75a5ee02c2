package inbox_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
)

func TestIdempotentRunsReceivedMessagesOnce(t *testing.T) {
	for name, o := range map[string]inbox.IdempotentOptions{
		"once":  {},
		"guard": {Mode: inbox.ModeGuard},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, inbox.Options{})
			mw, err := f.Idempotent(o)
			ok(t, err)
			runs := 0
			handle := mw(func(ctx context.Context, m postroom.Message) error {
				runs++
				if _, inTx := inbox.TxFrom(ctx); inTx != (name == "once") {
					t.Errorf("in a transaction: %v", inTx)
				}
				return nil
			})
			ok(t, handle(t.Context(), message("1")))
			ok(t, handle(t.Context(), message("1")))
			if runs != 1 {
				t.Errorf("%d runs, want 1", runs)
			}
			wantArgument(t, handle(t.Context(), message("")), "id")
		})
	}
}

func TestIdempotentLetsLocalMessagesPass(t *testing.T) {
	f := open(t, inbox.Options{})
	mw, err := f.Idempotent(inbox.IdempotentOptions{})
	ok(t, err)
	runs := 0
	handle := mw(func(context.Context, postroom.Message) error {
		runs++
		return nil
	})
	for range 2 {
		ok(t, handle(inbox.Local(t.Context()), message("1")))
		ok(t, handle(inbox.Local(t.Context()), postroom.Message{Topic: "command"}))
	}
	if runs != 4 {
		t.Errorf("%d runs, want 4", runs)
	}
	f.wantState(t, "1", postroom.StateNone)

	off := open(t, inbox.Options{Disabled: true})
	mw, err = off.Idempotent(inbox.IdempotentOptions{Mode: inbox.ModeGuard})
	ok(t, err)
	handle = mw(func(context.Context, postroom.Message) error { return nil })
	ok(t, handle(t.Context(), message("1")))
	off.wantState(t, "1", postroom.StateNone)
}

func TestIdempotentAcknowledgesTheDeadAndNotTheBusy(t *testing.T) {
	f := open(t, inbox.Options{})
	mw, err := f.Idempotent(inbox.IdempotentOptions{Mode: inbox.ModeGuard})
	ok(t, err)
	boom := errors.New("boom")
	handle := mw(func(context.Context, postroom.Message) error { return boom })
	wantErr(t, handle(t.Context(), message("1")), boom)
	f.wantState(t, "1", postroom.StateDead)
	ok(t, handle(t.Context(), message("1")))
	f.receive(t, "2")
	f.claim(t, 1)
	wantErr(t, handle(t.Context(), message("2")), postroom.ErrInProgress)

	_, err = f.Idempotent(inbox.IdempotentOptions{Mode: 9})
	wantArgument(t, err, "Mode")
	_, err = f.Idempotent(inbox.IdempotentOptions{Lease: -1})
	wantArgument(t, err, "Lease")
}

func TestFollowUpCommitsWithTheHandlerAndNamesItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		var follow *postroom.Message
		fail := true
		mux := inbox.NewMux()
		ok(t, mux.Handle("order.paid", postroom.TxHandlerFunc(func(ctx context.Context, _ postroom.Tx, _ *postroom.Message) error {
			for _, payload := range []string{"1", "2", "1"} {
				_, err := f.FollowUp(ctx, postroom.Message{Topic: "ship", Payload: []byte(payload)})
				ok(t, err)
			}
			if fail {
				fail = false
				return errors.New("not yet")
			}
			return nil
		})))
		ships := 0
		ok(t, mux.HandleFunc("ship", func(_ context.Context, m *postroom.Message) error {
			ships++
			follow = m
			return nil
		}))
		m := message("1")
		m.Headers = map[string]string{"traceparent": "00-a", "other": "x"}
		_, err := f.Receive(t.Context(), m)
		ok(t, err)
		run := func() {
			ok(t, inbox.NewWorker(f.Inbox, mux, inbox.WorkerOptions{Concurrency: 1}).RunUntilIdle(t.Context()))
		}
		run()
		if ships != 0 {
			t.Error("a follow-up of a failed handler ran")
		}
		for r, err := range f.All(t.Context(), inbox.Filter{}) {
			ok(t, err)
			ok(t, f.MarkDead(t.Context(), r.Source, r.ID, "x"))
			ok(t, f.Requeue(t.Context(), r.Source, r.ID, inbox.Order{}))
		}
		run()
		run()
		if ships != 2 {
			t.Fatalf("%d follow-ups ran, want 2", ships)
		}
		if follow.CausationID != "1" || follow.CorrelationID != "1" || follow.Source != "orders" ||
			follow.Headers["traceparent"] != "00-a" || follow.Headers["other"] != "" {
			t.Errorf("follow-up is %+v", follow)
		}
	})
}

package outbox_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/bus"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/outbox"
)

func TestP5_a_rollback_leaves_nothing_and_a_commit_all(t *testing.T) {
	onEach(t, outbox.Options{}, func(w *world) {
		for _, commit := range []bool{false, true} {
			tx := w.begin()
			w.must(tx.exec(`INSERT INTO orders VALUES ('o-1')`))
			for _, id := range []string{"1", "2", "3"} {
				w.must(w.out.Add(w.Context(), tx.own, message(id, "")))
			}
			if n := w.kept(); n != 0 {
				w.Fatalf("%d messages are there before the commit: add must not commit", n)
			}
			if commit {
				w.must(tx.commit())
				continue
			}
			w.must(tx.rollback())
			if n := w.kept() + w.count(`SELECT count(*) FROM orders`); n != 0 {
				w.Errorf("%d rows are left of what was rolled back", n)
			}
		}
		r := &recorder{}
		w.send(r)
		equal(w, r.ids(), []string{"1", "2", "3"}, "three adds are all or none, with the caller's own writes")
		if n := w.count(`SELECT count(*) FROM orders`); n != 1 {
			w.Errorf("%d orders", n)
		}
	})
}

// place is the command of the idempotency patterns: it checks for the order first.
func (w *world) place(order string) {
	w.Helper()
	tx := w.begin()
	if w.count(`SELECT count(*) FROM orders WHERE id = '`+order+`'`) > 0 {
		w.must(tx.commit())
		return
	}
	w.must(tx.exec(`INSERT INTO orders VALUES ('` + order + `')`))
	w.must(w.out.Add(w.Context(), tx.own, postroom.Message{Topic: "order.placed", Payload: []byte(order)}))
	w.must(tx.commit())
}

func TestAnIdempotentCommandTwiceLeavesOneRow(t *testing.T) {
	onEach(t, outbox.Options{}, func(w *world) {
		w.place("o-1")
		w.place("o-1")
		if n := w.kept(); n != 1 {
			w.Errorf("%d messages, want one: the second command found the order", n)
		}
		w.place("o-2")
		if n := w.kept(); n != 2 {
			w.Errorf("%d messages, want one per order", n)
		}
	})
}

func TestTheSameIdTwiceIsOneAndTheSameContentTwiceIsTwo(t *testing.T) {
	onEach(t, outbox.Options{}, func(w *world) {
		w.add(message("a", ""), message("a", ""))
		w.add(message("a", ""))
		w.add(postroom.Message{Topic: "t", Payload: []byte("same")}, postroom.Message{Topic: "t", Payload: []byte("same")})
		if n := w.kept(); n != 3 {
			w.Errorf("%d messages, want 3", n)
		}
	})
}

func TestAnOversizePayloadFailsBeforeAnySQL(t *testing.T) {
	onEach(t, outbox.Options{MaxPayload: 20}, func(w *world) {
		tx := w.begin()
		w.must(tx.exec(`INSERT INTO orders VALUES ('o-1')`))
		big := message("big", "")
		big.Payload = make([]byte, 21)
		err := w.out.Add(w.Context(), tx.own, message("small", ""), big)
		var arg *postroom.ArgumentError
		if !errors.As(err, &arg) || !strings.Contains(err.Error(), "message 2 of 2: postroom: payload is 21 bytes, at most 20 are allowed") {
			w.Errorf("%v, want an error that names message, size and limit", err)
		}
		w.must(tx.commit())
		if n := w.kept(); n != 0 {
			w.Errorf("%d messages of a refused call are there", n)
		}
		if n := w.count(`SELECT count(*) FROM orders`); n != 1 {
			w.Errorf("the transaction was not usable after the refusal: %d orders", n)
		}
	})
}

func TestAHandlersWritesItsMessagesAndItsAckAreOneCommit(t *testing.T) {
	onEach(t, outbox.Options{}, func(w *world) {
		in, err := inbox.New(w.store, "orders", inbox.Options{Logger: slog.New(slog.DiscardHandler)})
		w.must(err)
		defer func() { _ = in.Close() }()
		_, err = in.Receive(w.Context(), postroom.Message{
			Source: "web", ID: "cmd-1", Topic: "place", Payload: []byte("{}"), CorrelationID: "c-1",
			Headers: map[string]string{"traceparent": "00-1-2-01"},
		})
		w.must(err)
		runs := 0
		mux := inbox.NewMux()
		w.must(mux.Handle("place", w.handler(func(ctx context.Context, tx callerTx) error {
			if err := tx.exec(`INSERT INTO orders VALUES ('o-1')`); err != nil {
				return err
			}
			if err := w.out.Add(ctx, tx.own, message("placed", ""), message("billed", "")); err != nil {
				return err
			}
			if runs++; runs == 1 {
				return postroom.RetryAfter(0, errors.New("after all writes"))
			}
			return nil
		})))
		for try := 0; runs < 2; try++ {
			if try == 100 {
				rec, err := in.Get(w.Context(), "web", "cmd-1")
				w.Fatalf("the handler ran %d times, want it to be tried again: %+v, %v", runs, rec, err)
			}
			w.must(inbox.NewWorker(in, mux, inbox.WorkerOptions{Concurrency: 1}).RunUntilIdle(w.Context()))
			if n := w.kept() + w.count(`SELECT count(*) FROM orders`); runs == 1 && n != 0 {
				w.Fatalf("%d rows are left of a run that failed", n)
			}
		}
		rec, err := in.Get(w.Context(), "web", "cmd-1")
		w.must(err)
		if rec.State != postroom.StateDone || w.kept() != 2 || w.count(`SELECT count(*) FROM orders`) != 1 {
			w.Errorf("%v, %d messages, %d orders", rec.State, w.kept(), w.count(`SELECT count(*) FROM orders`))
		}
		sent, err := w.out.Get(w.Context(), "shop", "placed")
		w.must(err)
		if sent.CausationID != "cmd-1" || sent.CorrelationID != "c-1" || sent.Headers["traceparent"] != "00-1-2-01" {
			w.Errorf("causation %q, correlation %q, headers %v", sent.CausationID, sent.CorrelationID, sent.Headers)
		}
	})
}

// On one database a transaction that a store of one module began reaches the
// inbox of another, with tables of its own.
func TestOneTransactionReachesTheModulesOfOneDatabase(t *testing.T) {
	onEach(t, outbox.Options{}, func(w *world) {
		other := w.beside("shipping")
		shipping, err := inbox.New(other, "shipping", inbox.Options{Logger: slog.New(slog.DiscardHandler)})
		w.must(err)
		defer func() { _ = shipping.Close() }()
		b := bus.New()
		w.must(b.Subscribe(shipping, "order.*"))
		for _, commit := range []bool{false, true} {
			tx, err := w.store.Begin(w.Context())
			w.must(err)
			defer func() { _ = tx.Rollback(context.Background()) }() // a pool does not close before
			direct := message("direct", "")
			direct.Source = "shop"
			w.must(b.PublishTx(w.Context(), tx, direct))
			w.must(w.out.Add(w.Context(), tx, message("by outbox", "")))
			if commit {
				w.must(tx.Commit(w.Context()))
			} else {
				w.must(tx.Rollback(w.Context()))
			}
		}
		w.send(b)
		for _, id := range []string{"direct", "by outbox"} {
			if rec, err := shipping.Get(w.Context(), "shop", id); err != nil || rec.State != postroom.StateProcessing {
				w.Errorf("%s: %v, %v", id, rec, err)
			}
		}
	})
}

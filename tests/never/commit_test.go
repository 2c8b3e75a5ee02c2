package never

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/tests/park"
)

// committing is what commits when a statement does so by itself where it can: on
// PostgreSQL, "receive" and "ack_numbers" are their own commits, and so is "receive" on
// MariaDB.
func (w *world) committing(statement string) string {
	if w.postgres() || (w.mysql() && statement == "receive") {
		return statement
	}
	return park.Commit
}

// lost is a commit whose answer never comes, because the connection broke after
// the server had done it or before it learned of it.
var lost = map[string]park.When{"after it was done": park.After, "before it was done": park.Before}

func TestNever02_commit_reply_lost_on_receive(t *testing.T) {
	for name, when := range lost {
		t.Run(name, func(t *testing.T) {
			onServers(t, func(t *testing.T, w *world) {
				in := w.inbox()
				w.lot.Fail(when, w.committing("receive"), 1, park.ErrLost)
				_, err := in.Receive(t.Context(), message("a"))
				wants(t, err, postroom.ErrUnknown)
				want, outcome := "ready", postroom.Duplicate
				if when == park.Before {
					want, outcome = "none", postroom.Accepted
				}
				w.expect("a", want)
				w.receiveAs(outcome, message("a"))
				w.expect("a", "ready")
			})
		})
	}
}

func TestNever02_commit_reply_lost_on_a_batch(t *testing.T) {
	onServers(t, func(t *testing.T, w *world) {
		w.lot.Fail(park.After, w.committing("receive"), 1, park.ErrLost)
		puts := []box.Put{put(box.Queue, message("a")), put(box.Queue, message("b"))}
		_, err := w.store.Put(t.Context(), nil, puts)
		wants(t, err, postroom.ErrUnknown)
		w.receiveAs(postroom.Duplicate, message("a"))
		w.receiveAs(postroom.Duplicate, message("b"))
	})
}

func TestNever02_commit_reply_lost_on_settle(t *testing.T) {
	for name, when := range lost {
		t.Run(name, func(t *testing.T) {
			onServers(t, func(t *testing.T, w *world) {
				w.receive(message("a"))
				m := w.claimOne("w", "a")
				w.lot.Fail(when, w.committing("ack_numbers"), 1, park.ErrLost)
				ack := []box.Settlement{{Lease: m.Lease, Verb: box.Ack}}
				_, err := w.store.Settle(t.Context(), nil, ack)
				wants(t, err, postroom.ErrUnknown)
				// Trying again is safe: at most one of them takes effect.
				res, err := w.store.Settle(t.Context(), nil, ack)
				w.must(err)
				if res[0].Applied != (when == park.Before) {
					t.Errorf("the second ack: %+v", res[0])
				}
				w.expect("a", "done")
				w.receiveAs(postroom.Duplicate, message("a"))
			})
		})
	}
}

func TestNever02_commit_reply_lost_with_the_handlers_writes(t *testing.T) {
	for name, when := range lost {
		t.Run(name, func(t *testing.T) {
			onServers(t, func(t *testing.T, w *world) {
				w.receive(message("a"))
				m := w.claimOne("w", "a")
				w.lot.Fail(when, park.Commit, 1, park.ErrLost)
				wants(t, w.settleWithEffect(t.Context(), m), postroom.ErrUnknown)
				w.pass(2 * leaseTime)
				w.reap()
				for _, m := range w.claim("w2", 10) {
					w.must(w.settleWithEffect(t.Context(), m))
				}
				w.expect("a", "done")
				if n := w.effects("a"); n != 1 {
					t.Errorf("the effect is there %d times", n)
				}
			})
		})
	}
}

func TestNever02_commit_reply_lost_on_once(t *testing.T) {
	for name, when := range lost {
		t.Run(name, func(t *testing.T) {
			onServers(t, func(t *testing.T, w *world) {
				in := w.inbox()
				w.lot.Fail(when, park.Commit, 1, park.ErrLost)
				_, err := in.Once(t.Context(), message("a"), effect, inbox.OnceOptions{})
				wants(t, err, postroom.ErrUnknown)
				res, err := in.Once(t.Context(), message("a"), effect, inbox.OnceOptions{})
				w.must(err)
				if ran := res.Outcome == postroom.Accepted; ran != (when == park.Before) {
					t.Errorf("the redelivery gave %v", res.Outcome)
				}
				if n := w.effects("a"); n != 1 {
					t.Errorf("the effect is there %d times", n)
				}
			})
		})
	}
}

// effect is a handler of Once.
func effect(ctx context.Context, tx postroom.Tx, m *postroom.Message) error {
	stx, err := sqlstore.SQLTx(tx)
	if err != nil {
		return err
	}
	return addEffect(ctx, stx, m.ID)
}

func TestNever02_context_that_ends_in_the_commit_leaves_the_outcome_unknown(t *testing.T) {
	onServers(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		commit := w.lot.Park(park.After, w.committing("receive"))
		var err error
		wait := park.Go(t, func(context.Context) { _, err = w.inbox().Receive(ctx, message("a")) })
		commit.Wait(t)
		cancel()
		commit.Release()
		wait()
		// Either answer is right: the commit had come back, or it is not known.
		if err != nil {
			wants(t, err, postroom.ErrUnknown)
		}
		w.receiveAs(postroom.Duplicate, message("a"))
	})
}

func TestNever02_connection_lost_before_the_commit_changes_nothing(t *testing.T) {
	onServers(t, func(t *testing.T, w *world) {
		w.lot.Fail(park.After, "insert_work", 1, park.ErrLost)
		_, err := w.try(nil, box.Check, message("a"))
		if err == nil || errors.Is(err, sql.ErrNoRows) {
			t.Fatalf("got %v, want the error of the connection", err)
		}
		w.expect("a", "none")
		w.receiveAs(postroom.Accepted, message("a"))
	})
}

package never

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/tests/park"
)

func TestNever22_guard_tells_a_retry_in_flight_to_come_again(t *testing.T) {
	for name, release := range map[string]bool{"released on error": true, "kept on error": false} {
		t.Run(name, func(t *testing.T) {
			onAll(t, func(t *testing.T, w *world) {
				in, other := w.inbox(), w.join(sqlstore.Options{}).inbox()
				options := inbox.GuardOptions{ReleaseOnError: release}
				runs, began, fail := 0, make(chan struct{}), make(chan struct{})
				refused := errors.New("the mail server refused")
				var firstErr error
				wait := park.Go(t, func(ctx context.Context) {
					_, firstErr = in.Guard(ctx, message("a"), func(context.Context, *postroom.Message) error {
						runs++
						close(began)
						<-fail
						return refused
					}, options)
				})
				<-began
				work := func(context.Context, *postroom.Message) error { runs++; return nil }
				_, err := other.Guard(t.Context(), message("a"), work, options)
				wants(t, err, postroom.ErrInProgress)
				close(fail)
				wait()
				wants(t, firstErr, refused)
				// The sender was not told that it is done, so it comes again.
				res, err := other.Guard(t.Context(), message("a"), work, options)
				if !release {
					wants(t, err, postroom.ErrDead)
					w.expect("a", "dead")
					if runs != 1 {
						t.Errorf("it ran %d times", runs)
					}
					return
				}
				if err != nil || res.Outcome != postroom.Accepted || runs != 2 {
					t.Errorf("the retry gave %v, %v after %d runs", res.Outcome, err, runs)
				}
				w.expect("a", "done")
			})
		})
	}
}

func TestNever22_message_received_beside_a_guarded_run_that_fails_is_kept(t *testing.T) {
	onAll(t, func(t *testing.T, w *world) {
		_, err := w.inbox().Guard(t.Context(), message("a"), func(context.Context, *postroom.Message) error {
			w.receiveAs(postroom.Duplicate, message("a"))
			return errors.New("failed")
		}, inbox.GuardOptions{ReleaseOnError: true})
		if err == nil {
			t.Fatal("the failure was not reported")
		}
		w.expect("a", "scheduled")
		w.pass(time.Minute)
		w.claimOne("w", "a")
	})
}

func TestNever12_callers_need_no_second_connection(t *testing.T) {
	onAll(t, func(t *testing.T, w *world) {
		w.receive(message("queued"))
		w.receive(grouped("head", "g"))
		p := w.join(sqlstore.Options{})
		p.db.SetMaxOpenConns(1)
		in := p.inbox()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()

		tx, err := p.db.BeginTx(ctx, nil)
		p.must(err)
		if first, err := in.OnceTx(ctx, sqlstore.Tx(tx), message("once")); err != nil || !first {
			t.Fatal(first, err)
		}
		if first, err := in.OnceTx(ctx, sqlstore.Tx(tx), message("once")); err != nil || first {
			t.Errorf("the second in the same transaction: %v, %v", first, err)
		}
		for _, id := range []string{"new", "new", "queued"} {
			if _, err := in.ReceiveTx(ctx, sqlstore.Tx(tx), message(id)); err != nil {
				t.Fatal(err)
			}
		}
		p.must(tx.Commit())

		res, err := in.Once(ctx, message("own"), func(ctx context.Context, tx postroom.Tx, m *postroom.Message) error {
			_, err := in.ReceiveTx(ctx, tx, message("followup"))
			return err
		}, inbox.OnceOptions{})
		if err != nil || res.Outcome != postroom.Accepted {
			t.Fatal(res, err)
		}

		msgs, err := p.store.Claim(ctx, box.ClaimRequest{Consumer: consumer, Owner: "w", Lease: leaseTime, Limit: 10})
		p.must(err)
		if len(msgs) != 4 {
			t.Errorf("claimed %v", ids(msgs))
		}
		for _, m := range msgs {
			p.must(p.settleWithEffect(ctx, m))
		}
		for _, id := range []string{"once", "new", "queued", "own", "followup", "head"} {
			w.expect(id, "done")
		}
	})
}

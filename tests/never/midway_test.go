package never

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/tests/park"
)

// midway lets a program in whose statements wait wherever they compare texts,
// until leave is called: after their snapshot was taken, before they lock a row.
// PostgreSQL takes the operator of whichever schema comes first in the path.
func (w *world) midway() (p *party, reached, leave func()) {
	w.Helper()
	for _, ddl := range []string{
		`CREATE FUNCTION wait_texteq(text, text) RETURNS boolean LANGUAGE plpgsql AS
		 $$ BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN $1 OPERATOR(pg_catalog.=) $2; END $$`,
		`CREATE OPERATOR = (LEFTARG = text, RIGHTARG = text, FUNCTION = wait_texteq)`,
	} {
		w.exec(ddl)
	}
	dsn, err := url.Parse(w.dsn)
	w.must(err)
	query := dsn.Query()
	query.Set("search_path", query.Get("search_path")+",pg_catalog")
	dsn.RawQuery = query.Encode()
	slow := *w
	slow.dsn = dsn.String()
	p = slow.join(sqlstore.Options{})

	gate, err := w.db.Conn(w.Context())
	w.must(err)
	_, err = gate.ExecContext(w.Context(), `SELECT pg_advisory_lock(4711)`)
	w.must(err)
	w.Cleanup(func() { _ = gate.Close() })
	reached = func() {
		w.Helper()
		began := time.Now()
		for w.count(`SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711 AND NOT granted`) == 0 {
			if time.Since(began) > time.Minute {
				w.Fatal("the statement did not get there")
			}
		}
	}
	leave = func() {
		w.Helper()
		_, err := gate.ExecContext(w.Context(), `SELECT pg_advisory_unlock(4711)`)
		w.must(err)
	}
	return p, reached, leave
}

func TestNever01_ack_that_a_renewal_overtakes_leaves_no_work_behind(t *testing.T) {
	onPostgres(t, func(t *testing.T, w *world) {
		w.receive(message("a"))
		m := w.claimOne("worker", "a")
		slow, reached, leave := w.midway()
		var (
			settled []box.Settled
			err     error
		)
		wait := park.Go(t, func(ctx context.Context) {
			settled, err = slow.store.Settle(ctx, nil, []box.Settlement{{Lease: m.Lease, Verb: box.Ack}})
		})
		reached()
		_, extendErr := w.store.Extend(t.Context(), []postroom.Lease{m.Lease}, leaseTime)
		w.must(extendErr)
		leave()
		wait()
		w.must(err)
		if !settled[0].Applied {
			t.Errorf("settled %+v", settled[0])
		}
		w.expect("a", "done")
		if n := w.count(`SELECT count(*) FROM postroom_work`); n != 0 {
			t.Errorf("the message is done, and %d work rows are left to run it again", n)
		}
	})
}

func TestNever01_ack_that_a_replacement_overtakes_is_superseded(t *testing.T) {
	onPostgres(t, func(t *testing.T, w *world) {
		w.receive(message("a"))
		m := w.claimOne("worker", "a")
		slow, reached, leave := w.midway()
		var (
			settled []box.Settled
			err     error
		)
		wait := park.Go(t, func(ctx context.Context) {
			settled, err = slow.store.Settle(ctx, nil, []box.Settlement{{Lease: m.Lease, Verb: box.Ack}})
		})
		reached()
		newer := message("a")
		newer.Payload = []byte("newer")
		w.receiveAs(postroom.Replaced, newer)
		leave()
		wait()
		w.must(err)
		if !settled[0].Applied || !settled[0].Superseded {
			t.Errorf("settled %+v, want it superseded", settled[0])
		}
		w.expect("a", "done")
		if n := w.count(`SELECT count(*) FROM postroom_done WHERE superseded AND revision = 1`); n != 1 {
			t.Errorf("%d done rows tell that the first content ran, want 1", n)
		}
	})
}

func TestNever03_ack_that_another_claim_overtakes_changes_nothing(t *testing.T) {
	onPostgres(t, func(t *testing.T, w *world) {
		w.receive(message("a"))
		m := w.claimOne("worker", "a")
		slow, reached, leave := w.midway()
		var (
			settled []box.Settled
			err     error
		)
		wait := park.Go(t, func(ctx context.Context) {
			settled, err = slow.store.Settle(ctx, nil, []box.Settlement{{Lease: m.Lease, Verb: box.Ack}})
		})
		reached()
		w.pass(2 * leaseTime)
		_, reapErr := w.store.Reap(t.Context(), box.ReapRequest{Consumer: consumer})
		w.must(reapErr)
		w.claimOne("worker", "a") // the same owner: only the fence tells
		leave()
		wait()
		w.must(err)
		if settled[0].Applied {
			t.Errorf("settled %+v under a lease that is over", settled[0])
		}
		if n := w.count(`SELECT count(*) FROM postroom_work WHERE stage = 9`) - w.count(`SELECT count(*) FROM postroom_done`); n != 1 {
			t.Error("the message is done, though its new run is not")
		}
	})
}

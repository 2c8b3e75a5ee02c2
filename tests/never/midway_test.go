package never

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/tests/park"
)

// onAcks runs a test where a single statement finds out whether leases are
// current, and ends them.
func onAcks(t *testing.T, test func(t *testing.T, w *world)) {
	onPostgres(t, test)
	t.Run("mariadb", func(t *testing.T) { test(t, newMariaDB(t)) })
}

// midway lets a program in whose acknowledgements wait until leave is called:
// after their snapshot was taken, before they lock a row.
func (w *world) midway() (p *party, reached, leave func()) {
	w.Helper()
	if w.mysql() {
		return w.midwayMySQL()
	}
	return w.midwayPostgres()
}

// midwayMySQL has the statement read a table and wait for a lock, before it comes
// to the leases.
func (w *world) midwayMySQL() (p *party, reached, leave func()) {
	w.Helper()
	const leases = `FROM JSON_TABLE($1, '$[*]' COLUMNS (seq BIGINT PATH '$[0]', fence BIGINT PATH '$[1]')) AS i`
	if strings.Count(w.dialect.Statements, leases) != 1 {
		w.Fatal("the statement that acknowledges is not known by its begin anymore")
	}
	name := rand.Text()
	dialect := *w.dialect
	dialect.Statements = strings.Replace(dialect.Statements, leases, `FROM (SELECT GET_LOCK('`+name+`', 100) AS gate FROM {{version}} LIMIT 1) AS g
		STRAIGHT_JOIN`+strings.TrimPrefix(leases, "FROM"), 1)
	slow := *w
	slow.dialect = &dialect
	p = slow.join(sqlstore.Options{})

	gate, err := w.db.Conn(w.Context())
	w.must(err)
	_, err = gate.ExecContext(w.Context(), `DO GET_LOCK('`+name+`', 0)`)
	w.must(err)
	w.Cleanup(func() { _ = gate.Close() })
	reached = func() {
		w.Helper()
		w.eventually("the statement waits", func() bool {
			return w.count(`SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User lock' AND info LIKE '%`+name+`%' AND id <> CONNECTION_ID()`) == 1
		})
	}
	leave = func() {
		w.Helper()
		_, err := gate.ExecContext(w.Context(), `DO RELEASE_LOCK('`+name+`')`)
		w.must(err)
	}
	return p, reached, leave
}

// midwayPostgres has statements wait wherever they compare texts: PostgreSQL takes
// the operator of whichever schema comes first in the path.
func (w *world) midwayPostgres() (p *party, reached, leave func()) {
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
	onAcks(t, func(t *testing.T, w *world) {
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
	onAcks(t, func(t *testing.T, w *world) {
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
	onAcks(t, func(t *testing.T, w *world) {
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

// An exchange must not wait for a handler's transaction, nor leave out what else
// it was given.
func TestNever12_exchange_passes_by_a_lease_that_somebody_has_locked(t *testing.T) {
	t.Run("mariadb", func(t *testing.T) {
		w := newMariaDB(t)
		for _, id := range []string{"a", "b", "c"} {
			w.receive(message(id))
		}
		got := w.claim("worker", 2)
		tx := w.beginSQL(sql.LevelReadCommitted)
		_, err := tx.ExecContext(t.Context(), "SELECT seq FROM postroom_work WHERE seq = "+strconv.FormatInt(got[0].Lease.Seq, 10)+" FOR UPDATE")
		w.must(err)
		settled, next, err := w.store.Exchange(t.Context(), []box.Settlement{
			{Lease: got[0].Lease, Verb: box.Ack}, {Lease: got[1].Lease, Verb: box.Ack},
		}, box.ClaimRequest{Consumer: consumer, Owner: "worker", Lease: leaseTime, Limit: 5, ReadyOnly: true})
		w.must(err)
		if !settled[0].Locked || settled[0].Applied || !settled[1].Applied || len(next) != 1 || next[0].ID != "c" {
			t.Errorf("settled %+v and claimed %v, want the second one and c", settled, ids(next))
		}
		w.must(tx.Rollback())
		w.expect("a", "leased")
		w.expect("b", "done")
		w.ack(got[0])
	})
}

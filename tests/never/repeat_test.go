package never

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/tests/park"
)

// refusal is an error of the server, as drivers give it: by text or by method.
type refusal struct{ text, state string }

func (r refusal) Error() string    { return r.text }
func (r refusal) SQLState() string { return r.state }

// SQLErrorNumber is 0 where the state is no number.
func (r refusal) SQLErrorNumber() int32 {
	n, _ := strconv.Atoi(r.state)
	return int32(n) //nolint:gosec // they are short
}

// givenUp: the server rolled the transaction back, and the same may succeed.
func (w *world) givenUp() []refusal {
	if w.mysql() {
		return []refusal{
			{"Error 1213 (40001): Deadlock found when trying to get lock; try restarting transaction", "1213"},
			{"Error 1020 (HY000): Record has changed since last read in table 'message'", "1020"},
		}
	}
	if w.sqlserver() {
		return []refusal{{"mssql: Transaction was deadlocked", "1205"}, {"mssql: Snapshot isolation transaction aborted", "3960"}}
	}
	return []refusal{{"refused with 40001", "40001"}, {"refused with 40P01", "40P01"}}
}

func TestNever05_own_transactions_that_were_given_up_are_repeated(t *testing.T) {
	onServers(t, func(t *testing.T, w *world) {
		p := w.join(sqlstore.Options{})
		// A commit that is refused here leaves the transaction open on the server,
		// which that of InnoDB or SQL Server never does: there it is left out.
		commit := park.Commit
		if w.mysql() || w.sqlserver() {
			commit = "touch_work"
		}
		for _, code := range w.givenUp() {
			for _, at := range []string{"insert_message", "insert_work", commit} {
				p.lot.Fail(park.Before, at, 1, code)
				p.receiveAs(postroom.Accepted, message(code.state+at))
			}
			for _, at := range []string{"lock_work", "delete_work", "insert_done", commit} {
				p.receive(message("ack " + code.state + at))
			}
			for i, m := range p.claim("w", 100) {
				at := []string{"lock_work", "delete_work", "insert_done", commit}[i%4]
				p.lot.Fail(park.Before, at, 1, code)
				p.ack(m)
			}
			id := "moved " + code.state
			for _, at := range []string{"lookup", "lock_work", "update_work", commit} {
				p.receive(message(id + at))
				p.lot.Fail(park.Before, at, 1, code)
				res, err := p.store.Move(t.Context(), []box.Move{{Key: key(id + at), Action: box.MarkDead, Reason: "because"}})
				if err != nil || !res[0].Changed {
					t.Errorf("moved with %s at %s: %+v, %v", code.state, at, res, err)
				}
			}
			p.lot.Fail(park.Before, "claim", 1, code)
			p.receive(message("claimed " + code.state))
			got := p.claim("w", 10)
			p.lot.Fail(park.Before, "extend", 1, code)
			ext, err := p.store.Extend(t.Context(), []postroom.Lease{got[0].Lease}, leaseTime)
			if err != nil || !ext[0].Extended {
				t.Errorf("extended with %s: %+v, %v", code.state, ext, err)
			}
			w.pass(2 * leaseTime)
			p.lot.Fail(park.Before, "update_work", 1, code)
			if got := p.reap(); len(got) != 1 {
				t.Errorf("reaped with %s: %v", code.state, got)
			}
			for _, m := range p.claim("w", 10) {
				p.ack(m)
			}
		}
		w.pass(time.Hour)
		before := w.count(`SELECT count(*) FROM postroom_done`)
		p.lot.Fail(park.Before, "delete_message", 1, w.givenUp()[0])
		res, err := p.store.Cleanup(t.Context(), box.CleanupRequest{Consumer: consumer, Records: time.Minute})
		if err != nil || res.Records != before {
			t.Errorf("cleaned up %d of %d, %v", res.Records, before, err)
		}
	})
}

func TestNever05_callers_transaction_that_was_given_up_is_the_callers_to_repeat(t *testing.T) {
	onServers(t, func(t *testing.T, w *world) {
		for _, code := range w.givenUp() {
			tx := w.beginSQL(0)
			insert := "insert_message"
			if w.mysql() {
				insert = "insert_message_waiting"
			}
			w.lot.Fail(park.Before, insert, 1, code)
			_, err := w.try(tx, box.Once, message("a"))
			wants(t, err, postroom.ErrRetry)
			w.must(tx.Rollback())
		}
		tx := w.beginSQL(0)
		_, err := w.try(tx, box.Once, message("a"))
		w.must(err)
		w.must(tx.Commit())
	})
}

// A deadlock of the server's own making: a stranger holds the lane and wants the
// work row that a settle holds, which wants the lane.
func TestNever05_real_deadlock_is_repeated(t *testing.T) {
	onServers(t, func(t *testing.T, w *world) {
		// So that the store is who gives way: it looks for deadlocks first, or has
		// written less.
		dsn, patience := w.dsn, `INSERT INTO effect (id) WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT i FROM n`
		if w.postgres() {
			w.dsn += "&deadlock_timeout=50ms"
			patience = `SET LOCAL deadlock_timeout = '1min'`
		}
		p := w.join(sqlstore.Options{})
		w.dsn = dsn
		w.receive(grouped("a", "g"))
		m := p.claimOne("w", "a")
		stranger := w.beginSQL(0)
		_, err := stranger.ExecContext(t.Context(), patience)
		w.must(err)
		_, err = stranger.ExecContext(t.Context(), `SELECT * FROM postroom_lane FOR UPDATE`)
		w.must(err)
		spot := p.lot.Park(park.Before, "vacate_lanes")
		var settled []box.Settled
		wait := park.Go(t, func(ctx context.Context) {
			settled, err = p.inbox().Box().Settle(ctx, []*box.End{{Settlement: box.Settlement{Lease: m.Lease, Verb: box.Ack}}})
		})
		spot.Wait(t)
		var strangerErr error
		waitStranger := park.Go(t, func(ctx context.Context) {
			_, strangerErr = stranger.ExecContext(ctx, `SELECT * FROM postroom_work FOR UPDATE`)
			_ = stranger.Rollback()
		})
		w.waitForBlocked()
		spot.Release()
		waitStranger()
		wait()
		if err != nil || strangerErr != nil || !settled[0].Applied {
			t.Fatalf("settled %+v, %v; the stranger: %v", settled, err, strangerErr)
		}
		if p.lot.Count("vacate_lanes") < 2 {
			t.Error("there was no deadlock")
		}
		w.expect("a", "done")
	})
}

func TestNever06_two_processes_on_one_sqlite_file(t *testing.T) {
	w := newSQLite(t)
	a, b := w.child("receive", "a"), w.child("receive", "b")
	for i := range 50 {
		w.receiveAs(postroom.Accepted, message(fmt.Sprint("parent-", i)))
	}
	for _, c := range []*child{a, b} {
		if rest := c.until(""); rest != "finished" {
			t.Errorf("a process %s", rest)
		}
		w.must(c.cmd.Wait())
	}
	if n := w.count(`SELECT count(*) FROM postroom_message`); n != 250 {
		t.Errorf("%d of 250 messages are there", n)
	}
}

func TestNever06_writer_of_another_process_is_waited_for(t *testing.T) {
	w := newSQLite(t)
	p := w.join(sqlstore.Options{})
	commit := p.lot.Park(park.Before, park.Commit)
	first := p.later(nil, box.Queue, message("a"))
	commit.Wait(t)
	second := w.later(nil, box.Queue, message("b"))
	w.tries("begin")
	commit.Release()
	first.is(t, postroom.Accepted)
	second.is(t, postroom.Accepted)
	if got := ids(w.claim("w", 10)); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("claimed %v", got)
	}
}

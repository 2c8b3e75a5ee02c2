package never

import (
	"context"
	"errors"
	"testing"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/sqlstore"
)

func TestNever01_crash_after_commit_does_not_repeat_the_effect(t *testing.T) {
	onAll(t, func(t *testing.T, w *world) {
		w.receiveAs(postroom.Accepted, message("a"))
		c := w.child("settle", "after commit")
		c.until("ready")
		c.kill()
		w.expect("a", "done")
		w.pass(2 * leaseTime)
		if got := w.reap(); len(got) != 0 {
			t.Errorf("reaped %v", got)
		}
		if got := w.claim("w", 10); len(got) != 0 {
			t.Errorf("claimed %v", ids(got))
		}
		w.receiveAs(postroom.Duplicate, message("a"))
		if n := w.effects("a"); n != 1 {
			t.Errorf("the effect is there %d times", n)
		}
	})
}

func TestNever01_crash_before_commit_leaves_nothing_and_runs_again(t *testing.T) {
	onAll(t, func(t *testing.T, w *world) {
		w.receiveAs(postroom.Accepted, message("a"))
		c := w.child("settle", "before commit")
		c.until("ready")
		c.kill()
		w.waitForSessions()
		w.expect("a", "leased")
		if n := w.effects("a"); n != 0 {
			t.Errorf("the effect of a transaction that never committed is there %d times", n)
		}
		w.pass(2 * leaseTime)
		if got := w.reap(); len(got) != 1 {
			t.Fatalf("reaped %v, want the message of the process that died", got)
		}
		m := w.claimOne("w", "a")
		w.must(w.settleWithEffect(t.Context(), m))
		w.expect("a", "done")
		if n := w.effects("a"); n != 1 {
			t.Errorf("the effect is there %d times", n)
		}
	})
}

// settleWithEffect does what a transactional handler does.
func (p *party) settleWithEffect(ctx context.Context, m *postroom.Message) error {
	tx, err := p.store.Begin(ctx)
	if err != nil {
		return err
	}
	stx, err := sqlstore.SQLTx(tx)
	if err == nil {
		err = addEffect(ctx, stx, m.ID)
	}
	if err != nil {
		return errors.Join(err, tx.Rollback(ctx))
	}
	res, err := p.store.Settle(ctx, tx, []box.Settlement{{Lease: m.Lease, Verb: box.Ack}})
	if err == nil && !res[0].Applied {
		err = postroom.ErrLeaseLost
	}
	if err != nil {
		return errors.Join(err, tx.Rollback(ctx))
	}
	return tx.Commit(ctx)
}

// waitForSessions waits until the server has noticed which programs are gone.
func (w *world) waitForSessions() {
	w.Helper()
	idle := `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'`
	switch {
	case w.mysql():
		idle = `SELECT count(*) FROM information_schema.innodb_trx t JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
			WHERE p.db = DATABASE() AND p.id <> CONNECTION_ID()`
	case w.sqlserver():
		idle = `SELECT count(*) FROM sys.dm_exec_sessions WHERE database_id = DB_ID() AND session_id <> @@SPID AND open_transaction_count > 0`
	case !w.postgres():
		return
	}
	w.eventually("sessions of a killed program end", func() bool { return w.count(idle) == 0 })
}

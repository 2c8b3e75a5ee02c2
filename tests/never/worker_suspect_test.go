package never

import (
	"context"
	"os"
	"syscall"
	"testing"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/tests/park"
)

func TestNever09_worker_whose_handler_kills_it_loses_that_message_and_no_neighbour(t *testing.T) {
	onWorkers(t, func(t *testing.T, w *world) {
		neighbours := numbered("n", 20)
		w.receiveAll(append(neighbours, "killer")...)
		for range box.MaxLost {
			c := w.child("kill", "")
			if code := c.ended(); code != -1 {
				t.Fatalf("the child ended with %d, it should have killed itself", code)
			}
			w.waitForSessions()
			w.pass(2 * leaseTime)
		}
		w.finish()
		rec, err := w.store.Get(t.Context(), key("killer"))
		w.must(err)
		if rec.State != postroom.StateDead || rec.LastError != box.ProcessDied || w.effects("killer") != 0 {
			t.Errorf("the killer is %v %q with %d effects after five deaths", rec.State, rec.LastError, w.effects("killer"))
		}
		w.onceEach(neighbours...)
	})
}

// childKills is a worker that one message kills, and with it all that run
// beside that message: they wait for it.
func childKills(t testing.TB, w *world, _ string) {
	const together = `SELECT count(*) FROM postroom_work w JOIN postroom_message m ON m.seq = w.seq WHERE m.id = 'killer' AND w.stage = 9`
	p := w.program(25, inbox.Options{})
	o := swift()
	o.Concurrency = 21
	p.serve(t.Context(), p.worker(o, postroom.HandlerFunc(func(ctx context.Context, m *postroom.Message) error {
		if m.ID == "killer" {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		if w.count(together) > 0 {
			<-ctx.Done()
		}
		// SQLite may be busy, for which the message is not to blame.
		w.eventually("the effect is written", func() bool {
			_, err := w.db.ExecContext(ctx, "INSERT INTO effect (id) VALUES ('"+m.ID+"')")
			return err == nil
		})
		return nil
	})))
}

func TestNever09_worker_counts_no_lease_that_lapsed_because_the_database_was_away(t *testing.T) {
	for _, database := range []struct {
		name string
		make func(testing.TB) *world
	}{{"sqlite", newSQLite}, {"postgres", newPostgres}} {
		t.Run(database.name, func(t *testing.T) {
			w := database.make(t)
			names := numbered("m", 20)
			w.receiveAll(names...)
			p := w.program(0, inbox.Options{})
			o := swift()
			o.Concurrency = len(names) + 1 // so that it goes on claiming
			running := make(chan struct{}, len(names))
			back := make(chan struct{})
			p.start(o, postroom.HandlerFunc(func(context.Context, *postroom.Message) error {
				running <- struct{}{}
				<-back
				return nil
			}))
			for range names {
				<-running
			}
			for range box.MaxLost + 1 {
				away := p.lot.FailAll(park.Any, park.ErrLost)
				tried := p.lot.Count(park.Any)
				w.eventually("the worker notices", func() bool { return p.lot.Count(park.Any) > tried+2 })
				w.pass(2 * leaseTime)
				away.Cancel()
				// Both its claims and its reaper have been there since.
				tried = p.lot.Count(park.Any)
				w.eventually("the worker goes on", func() bool { return p.lot.Count(park.Any) > tried+10 })
			}
			if n := w.count(`SELECT count(*) FROM postroom_work WHERE lost > 0 OR stage <> 9`); n > 0 {
				t.Errorf("%d of %d messages suffered from the outage", n, len(names))
			}
			close(back)
			w.allDone()
			for _, name := range names {
				w.expect(name, "done")
			}
		})
	}
}

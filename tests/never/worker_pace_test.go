package never

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/inbox"
)

func TestNever17_worker_claims_what_falls_due_at_once_at_the_pace_of_its_slots(t *testing.T) {
	const slots, batch = 20, 30
	onWorkers(t, func(t *testing.T, w *world) {
		due := 1000
		if !w.postgres() {
			due = 100 // with the race detector, SQLite in Go is slow
		}
		puts := make([]box.Put, due)
		for i, id := range numbered("m", due) {
			m := message(id)
			m.DueAt = time.Now().Add(time.Hour)
			puts[i] = put(box.Queue, m)
		}
		_, err := w.store.Put(t.Context(), nil, puts)
		w.must(err)
		w.pass(2 * time.Hour)
		var running, most, asked, held atomic.Int64
		highest := func(of *atomic.Int64, n int64) {
			for old := of.Load(); n > old && !of.CompareAndSwap(old, n); old = of.Load() {
			}
		}
		p := w.program(0, inbox.Options{Observer: &postroom.Observer{
			Claimed: func(_ context.Context, e postroom.ClaimedEvent) { highest(&asked, int64(e.Asked)) },
		}})
		o := swift()
		o.Concurrency, o.Batch = slots, batch
		var runs atomic.Int64
		p.start(o, postroom.HandlerFunc(func(ctx context.Context, m *postroom.Message) error {
			highest(&most, running.Add(1))
			defer running.Add(-1)
			if runs.Add(1)%25 == 0 {
				var n int64
				if err := w.db.QueryRowContext(ctx, `SELECT count(*) FROM postroom_work WHERE stage = 9`).Scan(&n); err != nil {
					return err
				}
				highest(&held, n)
			}
			return nil
		}))
		w.allDone()
		if n := runs.Load(); n != int64(due) {
			t.Errorf("%d runs of %d messages", n, due)
		}
		if n := most.Load(); n > slots {
			t.Errorf("%d handlers ran at once in %d slots", n, slots)
		}
		if n := asked.Load(); n > batch {
			t.Errorf("a claim was for %d, the batch is %d", n, batch)
		}
		// What runs, what the slots get through during a claim, and what is not
		// settled yet.
		if n := held.Load(); n == 0 || n > slots+4*batch {
			t.Errorf("%d messages were leased at once, want some and at most %d", n, slots+4*batch)
		}
	})
}

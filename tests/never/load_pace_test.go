package never

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
)

// A hundred thousand messages fall due at once, while many callers receive more:
// the worker takes as many as it has slots for, and keeps no more in memory.
func TestNever17_under_load_100000_due_at_once_are_taken_at_the_pace_of_the_slots(t *testing.T) {
	const (
		due, handled = 100_000, 2_000
		batch        = 100
		payload      = 100
	)
	w := newPostgres(t)
	w.native = true
	w.seed(due, payload)
	var (
		l             leases
		running, runs atomic.Int64
		most          high
		end           = make(chan struct{}, loadSlots)
	)
	p := w.program(0, inbox.Options{Observer: l.observer()})
	o := swift()
	o.Concurrency, o.Batch = loadSlots, batch
	before := liveHeap()
	stop := p.start(o, postroom.HandlerFunc(func(ctx context.Context, _ *postroom.Message) error {
		most.see(running.Add(1))
		defer running.Add(-1)
		select {
		case <-end:
		case <-ctx.Done():
		}
		runs.Add(1)
		return nil
	}))
	c := p.call("more", 0)
	w.eventually("all slots are taken", func() bool { return running.Load() == loadSlots })
	// Each message that is received gives it an occasion to claim.
	w.eventually("more is received", func() bool { return c.acknowledged.Load() >= 5*loadCallers })
	if n := w.count(`SELECT count(*) FROM postroom_work WHERE stage = 9`); n != loadSlots {
		t.Errorf("%d messages are leased before any run has ended, want %d", n, loadSlots)
	}
	var leased, heap high
	w.eventually("enough are handled", func() bool {
		leased.see(int64(w.count(`SELECT count(*) FROM postroom_work WHERE stage = 9`)))
		heap.see(liveHeap() - before)
		for range loadSlots / 2 {
			end <- struct{}{}
		}
		return runs.Load() >= handled && c.acknowledged.Load() >= 20*loadCallers
	})
	c.end()
	close(end)
	stop()
	if n := c.refused.Load(); n > 0 {
		t.Errorf("%d calls of Receive were refused", n)
	}
	for what, is := range map[string]struct{ got, least, most int64 }{
		"handlers at once":                     {most.Load(), loadSlots, loadSlots},
		"messages asked for by one claim":      {l.asked.Load(), 1, batch},
		"messages got by one claim":            {l.got.Load(), 1, batch},
		"leases, by the worker's account":      {l.most.Load(), loadSlots, loadSlots + 4*batch},
		"leases, by the database":              {leased.Load(), loadSlots, loadSlots + 4*batch},
		"bytes of memory more than before":     {heap.Load(), 0, 20 << 20},
		"leases left after the worker stopped": {int64(w.count(`SELECT count(*) FROM postroom_work WHERE stage = 9`)), 0, 0},
	} {
		if is.got < is.least || is.got > is.most {
			t.Errorf("%s: %d, want %d to %d", what, is.got, is.least, is.most)
		}
	}
	done := w.count(`SELECT count(*) FROM postroom_done`)
	if n := runs.Load(); n != int64(done) {
		t.Errorf("%d runs, %d messages are done", n, done)
	}
	left := w.count(`SELECT count(*) FROM postroom_work WHERE stage IN (3, 7) AND attempt = 0 AND coalesce(lost, 0) = 0 AND owner = ''`)
	if all := due + int(c.acknowledged.Load()); done+left != all {
		t.Errorf("%d done and %d untouched of %d", done, left, all)
	}
}

// seed fills the store with messages that were scheduled, and fell due an hour ago.
// The store takes in the first; the others are copies of its rows.
func (w *world) seed(n, size int) {
	w.Helper()
	m := message("due-0")
	m.DueAt, m.Payload = time.Now().Add(time.Hour), []byte(strings.Repeat("x", size))
	w.receive(m)
	for _, query := range []string{
		`UPDATE postroom_work SET due = due - interval '2 hours', next = next - interval '2 hours'`,
		`INSERT INTO postroom_message SELECT (jsonb_populate_record(m, jsonb_build_object('seq', m.seq + i, 'id', 'due-' || i))).*
		 FROM postroom_message m, generate_series(1, %d) i`,
		`INSERT INTO postroom_work SELECT (jsonb_populate_record(w, jsonb_build_object('seq', w.seq + i, 'position', w.seq + i, 'ready_position', w.seq + i))).*
		 FROM postroom_work w, generate_series(1, %d) i`,
		`SELECT setval('postroom_sequence', %d + 1000)`,
		`ANALYZE postroom_message, postroom_work`,
	} {
		if strings.Contains(query, "%d") {
			query = fmt.Sprintf(query, n-1)
		}
		w.exec(query)
	}
}

func liveHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // a heap is not that large
}

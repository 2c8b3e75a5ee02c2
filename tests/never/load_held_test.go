package never

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/inbox"
)

// A transaction that took a message by Once stays open. As long as it does, the
// callers of other messages get theirs in, in any number, and have them handled;
// only those who receive the same message wait, and on two connections at most.
func TestNever21_under_load_one_open_transaction_delays_nobody_but_those_who_send_its_message(t *testing.T) {
	const share, waiters = 25, 8
	onPostgresWorkers(t, func(t *testing.T, w *world) {
		p := w.program(0, inbox.Options{})
		o := swift()
		o.Concurrency = loadSlots
		p.start(o, postroom.HandlerFunc(func(context.Context, *postroom.Message) error { return nil }))
		p.call("before", share).running.Wait()

		holder := w.beginSQL(0)
		if res, err := w.try(holder, box.Once, message("held")); err != nil || res.Outcome != postroom.Accepted {
			t.Fatalf("once: %v, %v", res.Outcome, err)
		}
		c := p.call("while", share)
		var (
			held    sync.WaitGroup
			through atomic.Int64
		)
		for range waiters {
			held.Go(func() {
				for {
					res, err := p.in.Receive(context.Background(), message("held"))
					switch {
					case err == nil:
						if res.Outcome != postroom.Duplicate {
							t.Errorf("the held message was received as %v", res.Outcome)
						}
						through.Add(1)
						return
					case !errors.Is(err, postroom.ErrInProgress) && !errors.Is(err, postroom.ErrUnknown):
						t.Errorf("receive the held message: %v", err)
						return
					}
				}
			})
		}
		var waiting high
		w.eventually("what was received meanwhile is handled", func() bool {
			waiting.see(int64(w.count(`SELECT count(*) FROM pg_stat_activity
				WHERE datname = current_database() AND application_name = '` + programName + `' AND wait_event_type = 'Lock'`)))
			return w.count(`SELECT count(*) FROM postroom_message m JOIN postroom_done d ON d.seq = m.seq WHERE id LIKE 'while-%'`) == loadCallers*share
		})
		c.running.Wait()
		if n := through.Load(); n > 0 {
			t.Errorf("%d calls received the message of the open transaction", n)
		}
		if n := waiting.Load(); n > 2 {
			t.Errorf("%d sessions waited at once, want at most 2", n)
		}
		w.must(holder.Commit())
		held.Wait()
		p.call("after", share).running.Wait()
		w.allDone()
		if n := w.count(`SELECT count(*) FROM postroom_done WHERE coalesce(runs, 1) = 1`); n != 3*loadCallers*share+1 {
			t.Errorf("%d messages are done after one run, want %d", n, 3*loadCallers*share+1)
		}
	})
}

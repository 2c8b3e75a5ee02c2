package never

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/tests/park"
)

const retention = time.Hour

func (p *party) cleanup(limit int) box.CleanupResult {
	p.Helper()
	res, err := p.store.Cleanup(p.Context(), box.CleanupRequest{Consumer: consumer, Records: retention, Limit: limit})
	p.must(err)
	return res
}

// done takes a message through to its end, longer ago than the retention.
func (w *world) done(id string) {
	w.Helper()
	if _, err := w.try(nil, box.Once, message(id)); err != nil {
		w.Fatal(err)
	}
	w.pass(2 * retention)
}

func TestNever11_cleanup_removes_only_what_is_done_and_past_retention(t *testing.T) {
	onAll(t, func(t *testing.T, w *world) {
		w.receive(message("dead"))
		w.settle(w.claimOne("w", "dead"), box.Fail)
		w.receive(message("waiting"))
		w.receive(grouped("arrived", "g"))
		_, err := w.try(nil, box.Check, postroom.Message{Consumer: consumer, Source: source, ID: "seen"})
		w.must(err)
		_, err = w.try(nil, box.Guard, message("guarded"))
		w.must(err)
		for i := range 7 {
			w.done(fmt.Sprint("old", i))
		}
		_, err = w.try(nil, box.Once, message("new"))
		w.must(err)
		// In batches, and going on after one that failed.
		if res := w.cleanup(3); res.Records != 3 || !res.More {
			t.Errorf("the first batch: %+v", res)
		}
		if !w.sqlite() {
			w.lot.Fail(park.Before, "delete_message", 1, park.ErrLost)
			if _, err := w.store.Cleanup(t.Context(), box.CleanupRequest{Consumer: consumer, Records: retention, Limit: 3}); err == nil {
				t.Error("a batch that was cut off gave no error")
			}
			w.waitForSessions()
		}
		if n := w.cleanup(3).Records + w.cleanup(3).Records; n != 4 {
			t.Errorf("%d of 4 were removed", n)
		}
		for id, want := range map[string]string{
			"dead": "dead", "waiting": "ready", "arrived": "arrived", "seen": "seen", "guarded": "leased", "new": "done", "old0": "none", "old6": "none",
		} {
			w.expect(id, want)
		}
	})
}

func TestNever11_replay_against_cleanup(t *testing.T) {
	replay := []box.Move{{Key: key("a"), Action: box.Replay, Actor: "op", Reason: "again"}}
	onServers(t, func(t *testing.T, w *world) {
		p := w.join(sqlstore.Options{})
		t.Run("cleanup first", func(t *testing.T) {
			for _, at := range []string{"delete_done", "delete_message", park.Commit} {
				w.done("a")
				spot := p.lot.Park(park.Before, at)
				wait := park.Go(t, func(context.Context) { p.cleanup(10) })
				spot.Wait(t)
				q := w.join(sqlstore.Options{})
				var res []box.MoveResult
				var err error
				waitMove := park.Go(t, func(ctx context.Context) { res, err = q.store.Move(ctx, replay) })
				q.tries("lock_done")
				spot.Release()
				wait()
				waitMove()
				w.must(err)
				wants(t, res[0].Err, postroom.ErrNotFound)
				w.expect("a", "none")
			}
		})
		t.Run("replay first", func(t *testing.T) {
			for _, at := range []string{"delete_done", "insert_work", park.Commit} {
				w.done("a")
				spot := p.lot.Park(park.Before, at)
				var res []box.MoveResult
				var err error
				wait := park.Go(t, func(ctx context.Context) { res, err = p.store.Move(ctx, replay) })
				spot.Wait(t)
				if res := w.cleanup(10); res.Records != 0 {
					t.Errorf("removed %d that are being replayed", res.Records)
				}
				spot.Release()
				wait()
				if err != nil || !res[0].Changed {
					t.Fatal(res, err)
				}
				w.ack(w.claimOne("w", "a"))
				w.pass(2 * retention)
				w.cleanup(10)
			}
		})
	})
}

func TestNever11_late_duplicate_against_cleanup(t *testing.T) {
	onServers(t, func(t *testing.T, w *world) {
		p := w.join(sqlstore.Options{})
		t.Run("duplicate stopped after its conflict", func(t *testing.T) {
			w.done("a")
			spot := p.lot.Park(park.Before, "lookup")
			late := p.later(nil, box.Queue, message("a"))
			spot.Wait(t)
			if res := w.cleanup(10); res.Records != 1 {
				t.Fatalf("removed %+v", res)
			}
			spot.Release()
			late.is(t, postroom.Accepted)
			w.ack(w.claimOne("w", "a"))
			w.pass(2 * retention)
		})
		t.Run("cleanup stopped before its commit", func(t *testing.T) {
			spot := p.lot.Park(park.Before, park.Commit)
			wait := park.Go(t, func(context.Context) { p.cleanup(10) })
			spot.Wait(t)
			late := w.later(nil, box.Queue, message("a"))
			if w.mysql() {
				// A look is enough: it was a duplicate before the cleanup.
				late.is(t, postroom.Duplicate)
				spot.Release()
				wait()
				w.receiveAs(postroom.Accepted, message("a"))
				w.ack(w.claimOne("w", "a"))
				return
			}
			w.waitForBlocked()
			spot.Release()
			wait()
			late.is(t, postroom.Accepted)
			w.ack(w.claimOne("w", "a"))
		})
		t.Run("within retention", func(t *testing.T) {
			w.receiveAs(postroom.Duplicate, message("a"))
			w.cleanup(10)
			w.receiveAs(postroom.Duplicate, message("a"))
		})
	})
}

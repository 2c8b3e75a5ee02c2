package never

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/tests/park"
)

func TestNever03_late_transaction_of_a_lost_lease_changes_nothing(t *testing.T) {
	onServers(t, func(t *testing.T, w *world) {
		slow := w.join(sqlstore.Options{})
		w.receive(message("a"))
		m := slow.claimOne("slow", "a")
		// The handler has written, and stands right before its ack.
		lock := slow.lot.Park(park.Before, "lock_work")
		var err error
		wait := park.Go(t, func(ctx context.Context) { err = slow.settleWithEffect(ctx, m) })
		lock.Wait(t)
		w.pass(2 * leaseTime)
		if got := w.reap(); len(got) != 1 {
			t.Fatalf("reaped %v", got)
		}
		again := w.claimOne("quick", "a")
		lock.Release()
		wait()
		wants(t, err, postroom.ErrLeaseLost)
		w.expect("a", "leased")
		if n := w.effects("a"); n != 0 {
			t.Errorf("the effect of the late one is there %d times", n)
		}
		w.must(w.settleWithEffect(t.Context(), again))
		if n := w.effects("a"); n != 1 {
			t.Errorf("the effect is there %d times", n)
		}
	})
}

func TestNever03_late_verdicts_of_a_lost_lease_change_nothing(t *testing.T) {
	onAll(t, func(t *testing.T, w *world) {
		w.receive(message("a"))
		late := w.claimOne("slow", "a")
		w.pass(2 * leaseTime)
		w.reap()
		now := w.claimOne("quick", "a")
		for verb := box.Ack; verb <= box.Park; verb++ {
			if w.settle(late, verb).Applied {
				t.Errorf("a late %v was applied", verb)
			}
			w.expect("a", "leased")
		}
		ext, err := w.store.Extend(t.Context(), []postroom.Lease{late.Lease}, leaseTime)
		w.must(err)
		if ext[0].Extended {
			t.Error("a late extension was applied")
		}
		w.ack(now)
		if w.settle(late, box.Ack).Applied {
			t.Error("a late ack of a done message was applied")
		}
	})
}

func TestNever03_reap_waits_for_no_transaction_that_is_about_to_ack(t *testing.T) {
	onServers(t, func(t *testing.T, w *world) {
		slow := w.join(sqlstore.Options{})
		w.receive(message("a"))
		m := slow.claimOne("slow", "a")
		commit := slow.lot.Park(park.Before, park.Commit)
		var err error
		wait := park.Go(t, func(ctx context.Context) { err = slow.settleWithEffect(ctx, m) })
		commit.Wait(t)
		// Its row is locked from here on, so it is passed by, not ended.
		passed := w.hasty()
		ctx := t.Context()
		bound := `SET lock_timeout = '5s'`
		switch {
		case w.mysql():
			bound = `SET innodb_lock_wait_timeout = 5`
		case w.sqlserver():
			bound = `SET LOCK_TIMEOUT 5000`
		}
		passed.exec(bound)
		got, reapErr := passed.store.Reap(ctx, box.ReapRequest{Consumer: consumer})
		if reapErr != nil || len(got) != 0 {
			t.Errorf("reaped %v, %v", got, reapErr)
		}
		ext, extErr := passed.store.Extend(ctx, []postroom.Lease{m.Lease}, leaseTime)
		if extErr != nil || ext[0].Extended || !ext[0].Locked {
			t.Errorf("extended %+v, %v; want that it is locked", ext, extErr)
		}
		commit.Release()
		wait()
		w.must(err)
		w.expect("a", "done")
		if n := w.effects("a"); n != 1 {
			t.Errorf("the effect is there %d times", n)
		}
	})
}

func TestNever07_claimers_never_get_more_than_they_asked_for_nor_the_same(t *testing.T) {
	const (
		claimers = 16
		batch    = 7
		total    = 400
	)
	onAll(t, func(t *testing.T, w *world) {
		puts := make([]box.Put, total)
		for i := range puts {
			puts[i] = put(box.Queue, message(fmt.Sprint("m", i)))
		}
		_, err := w.store.Put(t.Context(), nil, puts)
		w.must(err)
		got := make(chan []string, total)
		begin := make(chan struct{})
		var waits []func()
		for n := range claimers {
			p := w.store
			waits = append(waits, park.Go(t, func(ctx context.Context) {
				<-begin
				for empty := 0; empty < 2; {
					msgs, err := p.Claim(ctx, box.ClaimRequest{Consumer: consumer, Owner: fmt.Sprint("w", n), Lease: leaseTime, Limit: batch})
					if err != nil {
						t.Errorf("claim: %v", err)
						return
					}
					if len(msgs) > batch {
						t.Errorf("a claim of %d gave %d", batch, len(msgs))
					}
					if len(msgs) == 0 {
						empty++
					}
					got <- ids(msgs)
				}
			}))
		}
		close(begin)
		for _, wait := range waits {
			wait()
		}
		close(got)
		seen := map[string]int{}
		for batch := range got {
			for _, id := range batch {
				seen[id]++
			}
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("%s was claimed %d times", id, n)
			}
		}
		if len(seen) != total {
			t.Errorf("%d of %d were claimed", len(seen), total)
		}
	})
}

func TestNever07_crossed_batches_do_not_deadlock(t *testing.T) {
	onServers(t, func(t *testing.T, w *world) {
		const size, rounds = 20, 4
		for round := range rounds {
			var waits []func()
			outcomes := make(chan postroom.Outcome, 4*size)
			for n := range 4 {
				puts := make([]box.Put, size)
				for i := range puts {
					at := i
					if n%2 == 1 {
						at = size - 1 - i
					}
					// Another content each time, so that they also replace each other.
					m := message(fmt.Sprintf("r%d-%d", round, at))
					m.Payload = []byte(fmt.Sprint("by ", n))
					puts[i] = put(box.Queue, m)
				}
				waits = append(waits, park.Go(t, func(ctx context.Context) {
					res, err := w.store.Put(ctx, nil, puts)
					if err != nil {
						t.Errorf("crossed batch: %v", err)
						return
					}
					for i := range res {
						if res[i].Err != nil {
							t.Errorf("crossed batch: %v", res[i].Err)
						}
						outcomes <- res[i].Outcome
					}
				}))
			}
			for _, wait := range waits {
				wait()
			}
			close(outcomes)
			accepted := 0
			for o := range outcomes {
				if o == postroom.Accepted {
					accepted++
				}
			}
			if accepted != size {
				t.Errorf("%d of %d messages were accepted", accepted, size)
			}
		}
	})
}

func TestNever07_crossed_inserts_wait_in_one_order(t *testing.T) {
	onServers(t, func(t *testing.T, w *world) {
		first, second := w.join(sqlstore.Options{}), w.join(sqlstore.Options{})
		batch := func(ids ...string) []box.Put {
			puts := make([]box.Put, len(ids))
			for i, id := range ids {
				puts[i] = put(box.Once, message(id))
			}
			return puts
		}
		held := first.lot.Park(park.After, "insert_message")
		var firstRes, secondRes []box.PutResult
		var firstErr, secondErr error
		waitFirst := park.Go(t, func(ctx context.Context) { firstRes, firstErr = first.store.Put(ctx, nil, batch("a", "b", "c")) })
		held.Wait(t)
		waitSecond := park.Go(t, func(ctx context.Context) { secondRes, secondErr = second.store.Put(ctx, nil, batch("c", "b", "a")) })
		w.waitForFlush(second)
		held.Release()
		waitFirst()
		waitSecond()
		if err := errors.Join(firstErr, secondErr); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if firstRes[i].Outcome != postroom.Accepted || secondRes[i].Outcome != postroom.Duplicate {
				t.Errorf("outcomes %v and %v", firstRes[i].Outcome, secondRes[i].Outcome)
			}
		}
	})
}

// waitForFlush waits until a flush of p's waits for a key that another has
// inserted and not yet committed.
func (w *world) waitForFlush(p *party) {
	w.Helper()
	if w.mysql() {
		p.tries("probe_keys")
		return
	}
	w.waitForBlocked()
}

// waitForBlocked waits until some session waits for another one's lock.
func (w *world) waitForBlocked() {
	w.Helper()
	w.eventually("a session waits for a lock", w.blocked)
}

func TestNever08_numbers_out_of_commit_order_skip_nothing_and_wait_for_nothing(t *testing.T) {
	onServers(t, func(t *testing.T, w *world) {
		early := w.beginSQL(0)
		gone := w.beginSQL(0)
		if _, err := w.try(early, box.Queue, message("early")); err != nil {
			t.Fatal(err)
		}
		if _, err := w.try(gone, box.Queue, message("gone")); err != nil {
			t.Fatal(err)
		}
		w.receive(message("late")) // a higher number, committed first
		got := w.claim("w", 10)
		if strings.Join(ids(got), " ") != "late" {
			t.Errorf("claimed %v while lower numbers are open, want late", ids(got))
		}
		w.must(gone.Rollback())
		w.must(early.Commit())
		if got := w.claim("w", 10); strings.Join(ids(got), " ") != "early" {
			t.Errorf("claimed %v, want early: its number was passed by before", ids(got))
		}
		w.expect("gone", "none")
		w.receiveAs(postroom.Accepted, message("gone"))
		w.claimOne("w", "gone")
	})
}

func TestNever09_message_whose_process_dies_is_dead_after_five_and_its_neighbours_are_not(t *testing.T) {
	onAll(t, func(t *testing.T, w *world) {
		w.receive(message("killer"))
		w.receive(message("neighbour"))
		for death := 1; death <= 5; death++ {
			kind := "any"
			if death > 3 {
				kind = "suspect" // and so alone
				w.expect("killer", "suspect")
				for _, m := range w.claim("other", 10) {
					if m.ID == "killer" {
						t.Fatalf("a suspect was claimed among others, after %d deaths", death-1)
					}
					w.ack(m)
				}
			}
			c := w.child("claim", kind)
			claimed := strings.Fields(c.until("claimed"))
			if kind == "suspect" && len(claimed) != 1 {
				t.Errorf("suspects were claimed together: %v", claimed)
			}
			c.kill()
			w.pass(2 * leaseTime)
			w.reap()
			if kind == "any" {
				continue
			}
			// The neighbour, a suspect too by its company, is cleared by a run.
			for {
				got, err := w.store.Claim(t.Context(), box.ClaimRequest{Consumer: consumer, Owner: "w", Lease: leaseTime, Limit: 1, Suspect: true})
				w.must(err)
				if len(got) == 0 {
					break
				}
				if got[0].ID == "killer" {
					w.settle(got[0], box.Release)
					break
				}
				w.ack(got[0])
			}
		}
		rec, err := w.store.Get(t.Context(), key("killer"))
		w.must(err)
		if rec.State != postroom.StateDead || rec.LastError != box.ProcessDied {
			t.Errorf("the killer is %v %q after five lost leases", rec.State, rec.LastError)
		}
		w.expect("neighbour", "done")
	})
}

package never

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/tests/park"
)

// An answer is what a put in the background gave.
type answer struct {
	res  box.PutResult
	err  error
	wait func()
}

// later puts a message in the background.
func (p *party) later(tx *sql.Tx, mode box.Mode, m postroom.Message) *answer {
	p.Helper()
	a := &answer{}
	a.wait = park.Go(p, func(context.Context) { a.res, a.err = p.try(tx, mode, m) })
	return a
}

func (a *answer) is(t testing.TB, want postroom.Outcome) {
	t.Helper()
	a.wait()
	if a.err != nil || a.res.Outcome != want {
		t.Errorf("got %v, %v; want %v", a.res.Outcome, a.err, want)
	}
}

// tries waits until a party has looked at a key again and again: it waits.
func (p *party) tries(statement string) {
	p.Helper()
	p.eventually("it tries again", func() bool { return p.lot.Count(statement) >= 3 })
}

// modes pairs what came first with what comes second, and the outcome of the
// second once the first has committed.
var modes = map[string]struct {
	first, second box.Mode
	after         postroom.Outcome
}{
	"once then once":       {box.Once, box.Once, postroom.Duplicate},
	"once then receive":    {box.Once, box.Queue, postroom.Duplicate},
	"receive then once":    {box.Queue, box.Once, postroom.Accepted},
	"receive then receive": {box.Queue, box.Queue, postroom.Duplicate},
}

func TestNever04_second_transaction_on_a_key_waits_for_the_first(t *testing.T) {
	onServers(t, func(t *testing.T, w *world) {
		for name, mode := range modes {
			for _, second := range []string{"caller", "own"} {
				for _, end := range []string{"commit", "rollback"} {
					id := name + "/" + second + "/" + end
					t.Run(id, func(t *testing.T) {
						w.secondWaits(t, id, second == "caller", end == "commit", mode.first, mode.second, mode.after)
					})
				}
			}
		}
	})
}

func (w *world) secondWaits(t *testing.T, id string, caller, commit bool, first, second box.Mode, after postroom.Outcome) {
	p := w.join(sqlstore.Options{})
	held := w.beginSQL(0)
	if _, err := w.try(held, first, message(id)); err != nil {
		t.Fatal(err)
	}
	var tx *sql.Tx
	if caller {
		tx = p.beginSQL(0)
	}
	a := p.later(tx, second, message(id))
	w.waitForKey(p, caller)
	if commit {
		w.must(held.Commit())
		a.is(t, after)
	} else {
		w.must(held.Rollback())
		a.is(t, postroom.Accepted)
	}
	if tx == nil {
		return
	}
	// Whatever the answer was, the caller's transaction goes on.
	w.must(addEffect(t.Context(), tx, id))
	w.must(tx.Commit())
}

// waitForKey waits until p waits for a key in a caller's open transaction.
func (w *world) waitForKey(p *party, caller bool) {
	w.Helper()
	switch {
	case w.mysql() && caller:
		w.waitForBlocked()
	case w.mysql():
		p.tries("probe_keys")
	case caller:
		p.tries("hold_key")
	default:
		p.tries("held_keys")
	}
}

func TestNever04_wait_is_bounded_and_the_transaction_stays_usable(t *testing.T) {
	onServers(t, func(t *testing.T, w *world) {
		held := w.beginSQL(0)
		if _, err := w.try(held, box.Once, message("a")); err != nil {
			t.Fatal(err)
		}
		p := w.hasty()
		_, err := p.try(nil, box.Queue, message("a"))
		wants(t, err, postroom.ErrInProgress)
		for _, mode := range []box.Mode{box.Once, box.Queue} {
			tx := p.beginSQL(0)
			w.must(addEffect(t.Context(), tx, "kept"))
			_, err := p.try(tx, mode, message("a"))
			wants(t, err, postroom.ErrInProgress)
			w.must(addEffect(t.Context(), tx, "kept"))
			w.must(tx.Commit())
		}
		if n := w.effects("kept"); n != 4 {
			t.Errorf("%d of 4 writes of the callers were kept", n)
		}
	})
}

func TestNever04_second_waits_for_a_flush_under_way(t *testing.T) {
	onServers(t, func(t *testing.T, w *world) {
		for name, caller := range map[string]bool{"caller": true, "own": false} {
			for _, commit := range []bool{true, false} {
				id := name
				if !commit {
					id += " after rollback"
				}
				t.Run(id, func(t *testing.T) {
					flush, p := w.join(sqlstore.Options{}), w.join(sqlstore.Options{})
					inserted := flush.lot.Park(park.Before, park.Commit)
					if !commit {
						flush.lot.Fail(park.Before, park.Commit, 1, park.ErrLost)
					}
					first := flush.later(nil, box.Once, message(id))
					inserted.Wait(t)
					var tx *sql.Tx
					if caller {
						tx = p.beginSQL(0)
					}
					second := p.later(tx, box.Queue, message(id))
					if caller {
						w.waitForBlocked()
					} else {
						w.waitForFlush(p)
					}
					inserted.Release()
					first.wait()
					if commit {
						second.is(t, postroom.Duplicate)
					} else {
						second.is(t, postroom.Accepted)
					}
					if caller {
						w.must(tx.Commit())
					}
					w.expect(id, map[bool]string{true: "done", false: "ready"}[commit])
				})
			}
		}
	})
}

// A program that is stopped in the middle of a flush must not hold up those who
// wait for its key for longer than the bound either.
func TestNever04_wait_for_a_flush_that_hangs_is_bounded(t *testing.T) {
	onServers(t, func(t *testing.T, w *world) {
		for name, caller := range map[string]bool{"caller": true, "own": false} {
			t.Run(name, func(t *testing.T) {
				flush, p := w.hasty(), w.hasty()
				inserted := flush.lot.Park(park.Before, park.Commit)
				first := flush.later(nil, box.Once, message(name))
				inserted.Wait(t)
				var tx *sql.Tx
				if caller {
					tx = p.beginSQL(0)
				}
				second := p.later(tx, box.Queue, message(name))
				second.wait()
				// It waited for the key until its bound, or until the server ended
				// the session that hung.
				if second.err != nil {
					wants(t, second.err, postroom.ErrInProgress)
				}
				if caller {
					w.must(tx.Commit())
				}
				inserted.Release()
				first.wait()
			})
		}
	})
}

func TestNever04_repeatable_read_learns_of_it_or_asks_the_caller_to_repeat(t *testing.T) {
	onServers(t, func(t *testing.T, w *world) {
		for _, level := range []sql.IsolationLevel{sql.LevelRepeatableRead, sql.LevelSerializable} {
			for _, mode := range []box.Mode{box.Once, box.Queue} {
				id := level.String() + mode.String()
				tx := w.beginSQL(level)
				_, err := tx.ExecContext(t.Context(), `SELECT count(*) FROM effect`) // takes its snapshot
				w.must(err)
				if _, err := w.try(nil, box.Once, message(id)); err != nil {
					t.Fatal(err)
				}
				res, err := w.try(tx, mode, message(id))
				if w.mysql() || w.sqlserver() {
					// It looks beside the transaction, or past its isolation.
					w.must(err)
					if res.Outcome != postroom.Duplicate {
						t.Errorf("%s: it gave %v", id, res.Outcome)
					}
					w.must(tx.Commit())
					continue
				}
				wants(t, err, postroom.ErrRetry)
				w.must(tx.Rollback())
				again := w.beginSQL(level)
				res, err = w.try(again, mode, message(id))
				if err != nil || res.Outcome != postroom.Duplicate {
					t.Errorf("%s: repeated, it gave %v, %v", id, res.Outcome, err)
				}
				w.must(again.Commit())
			}
		}
	})
}

func TestNever04_sqlite_second_writer_waits_for_the_first(t *testing.T) {
	for _, commit := range []bool{true, false} {
		w := newSQLite(t)
		p := w.join(sqlstore.Options{})
		held := w.beginSQL(0)
		if _, err := w.try(held, box.Once, message("a")); err != nil {
			t.Fatal(err)
		}
		second := p.later(nil, box.Queue, message("a"))
		p.tries("begin")
		want := postroom.Duplicate
		if commit {
			w.must(held.Commit())
		} else {
			w.must(held.Rollback())
			want = postroom.Accepted
		}
		second.is(t, want)
	}
}

func TestNever04_sqlite_wait_is_bounded(t *testing.T) {
	w := newSQLite(t)
	p := w.hasty()
	held := w.beginSQL(0)
	if _, err := w.try(held, box.Once, message("a")); err != nil {
		t.Fatal(err)
	}
	_, err := p.try(nil, box.Queue, message("a"))
	wants(t, err, postroom.ErrInProgress)
	// A caller's transaction that can't write is the caller's to repeat.
	tx := p.beginSQL(0)
	_, err = p.try(tx, box.Once, message("a"))
	wants(t, err, postroom.ErrRetry)
	w.must(tx.Rollback())
	w.must(held.Commit())
	again := p.beginSQL(0)
	res, err := p.try(again, box.Once, message("a"))
	if err != nil || res.Outcome != postroom.Duplicate {
		t.Errorf("repeated, it gave %v, %v", res.Outcome, err)
	}
	w.must(again.Commit())
}

func TestNever21_open_once_transaction_delays_no_other_message(t *testing.T) {
	onServers(t, func(t *testing.T, w *world) {
		held := w.beginSQL(0)
		first, err := w.inbox().OnceTx(t.Context(), sqlstore.Tx(held), message("held"))
		if err != nil || !first {
			t.Fatal(first, err)
		}
		p := w.hasty()
		p.receiveAs(postroom.Accepted, message("other"))
		res, err := p.inbox().ReceiveAll(t.Context(), []postroom.Message{message("before"), message("held"), message("behind")})
		wants(t, err, postroom.ErrInProgress)
		if res[0].Outcome != postroom.Accepted || res[2].Outcome != postroom.Accepted {
			t.Errorf("the neighbours got %+v", res)
		}
		wants(t, res[1].Err, postroom.ErrInProgress)

		// The neighbours are durable before anybody begins to wait for the key.
		patient := w.join(sqlstore.Options{})
		var batch []box.PutResult
		wait := park.Go(t, func(ctx context.Context) {
			batch, err = patient.store.Put(ctx, nil, []box.Put{put(box.Queue, message("held")), put(box.Queue, message("free"))})
		})
		w.waitForKey(patient, false)
		w.expect("free", "ready")
		w.must(held.Commit())
		wait()
		w.must(err)
		if batch[0].Outcome != postroom.Duplicate || batch[1].Outcome != postroom.Accepted {
			t.Errorf("the batch gave %+v", batch)
		}
	})
}

func TestNever21_row_locked_by_a_replacement_delays_no_other_message(t *testing.T) {
	onServers(t, func(t *testing.T, w *world) {
		w.receive(message("held"))
		held := w.beginSQL(0)
		other := message("held")
		other.Payload = []byte("another")
		if _, err := w.try(held, box.Queue, other); err != nil {
			t.Fatal(err)
		}
		// Announced keys are only a courtesy: this one goes by the row's lock.
		p := w.hasty()
		third := message("held")
		third.Payload = []byte("a third")
		res, err := p.store.Put(t.Context(), nil, []box.Put{put(box.Queue, message("x")), put(box.Queue, third), put(box.Queue, message("y"))})
		w.must(err)
		if res[0].Outcome != postroom.Accepted || res[2].Outcome != postroom.Accepted {
			t.Errorf("the neighbours got %+v", res)
		}
		wants(t, res[1].Err, postroom.ErrInProgress)
		got := w.claim("w", 10)
		if len(got) != 2 {
			t.Errorf("claimed %v, want the neighbours", ids(got))
		}
		w.must(held.Commit())
		w.claimOne("w", "held")
	})
}

func TestNever04_crossed_batches_of_two_callers_wait_in_turn(t *testing.T) {
	onServers(t, func(t *testing.T, w *world) {
		first, second := w.join(sqlstore.Options{}), w.join(sqlstore.Options{})
		one, two := first.beginSQL(0), second.beginSQL(0)
		puts := func(ids ...string) (puts []box.Put) {
			for _, id := range ids {
				puts = append(puts, put(box.Queue, message(id)))
			}
			return puts
		}
		holds := "hold_key"
		if w.mysql() {
			holds = "insert_message_waiting"
		}
		held := first.lot.Park(park.After, holds)
		var firstErr, secondErr error
		waitFirst := park.Go(t, func(ctx context.Context) {
			_, firstErr = first.store.Put(ctx, sqlstore.Tx(one), puts("a", "b"))
			if firstErr == nil {
				firstErr = one.Commit()
			}
		})
		held.Wait(t)
		asked := second.lot.ParkNth(park.After, holds, 2)
		waitSecond := park.Go(t, func(ctx context.Context) {
			_, secondErr = second.store.Put(ctx, sqlstore.Tx(two), puts("b", "a"))
		})
		if w.mysql() {
			w.waitForBlocked()
		} else {
			asked.Wait(t)
		}
		held.Release()
		asked.Release()
		waitFirst()
		waitSecond()
		w.must(firstErr)
		w.must(secondErr)
	})
}

func TestNever04_second_content_does_not_overtake_the_first_that_was_held(t *testing.T) {
	onServers(t, func(t *testing.T, w *world) {
		holder, sender := w.join(sqlstore.Options{}), w.join(sqlstore.Options{})
		tx := holder.beginSQL(0)
		_, err := holder.try(tx, box.Queue, message("a"))
		w.must(err)
		// The holder gives up when the first content was found held, and the second
		// is about to go.
		second := sender.lot.ParkNth(park.Before, "receive", 2)
		batch := []box.Put{put(box.Queue, message("a")), put(box.Queue, message("a")), put(box.Queue, grouped("b", "g"))}
		for i := range batch {
			batch[i].Divert = true
			batch[i].Message.Payload = []byte{byte(i)}
		}
		var results []box.PutResult
		over := make(chan struct{})
		wait := park.Go(t, func(ctx context.Context) {
			defer close(over)
			results, err = sender.store.Put(ctx, nil, batch)
		})
		select {
		case <-second.Arrived():
		case <-over: // it did not even try
		}
		w.must(tx.Rollback())
		second.Release()
		wait()
		w.must(err)
		for i, want := range []error{box.ErrHeld, box.ErrHeld, nil} {
			if !errors.Is(results[i].Err, want) {
				t.Errorf("content %d: %+v, want %v", i, results[i], want)
			}
		}
	})
}

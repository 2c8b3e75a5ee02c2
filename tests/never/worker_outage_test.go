package never

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
)

func TestNever14_worker_and_intake_outlive_a_server_that_ends_all_sessions_again_and_again(t *testing.T) {
	onPostgresWorkers(t, func(t *testing.T, w *world) {
		const senders, each = 3, 20
		p := w.program(0, inbox.Options{})
		o := swift()
		// A commit whose answer was lost leaves a lease that has to lapse.
		o.Lease = time.Second
		o.MaxAttempts = 1000
		p.start(o, p.handler(plainly))
		var acknowledged atomic.Int64
		var sending sync.WaitGroup
		for s := range senders {
			sending.Go(func() {
				for _, id := range numbered(fmt.Sprint("s", s), each) {
					for {
						if _, err := p.in.Receive(context.Background(), message(id)); err == nil {
							break
						}
					}
					acknowledged.Add(1)
				}
			})
		}
		ended := 0
		for n := int64(0); n < senders*each; n += 5 {
			w.eventually("senders go on", func() bool { return acknowledged.Load() > n })
			ended += w.endSessions()
		}
		sending.Wait()
		if ended == 0 {
			t.Error("no session was ended")
		}
		w.allDone()
		for s := range senders {
			w.onceEach(numbered(fmt.Sprint("s", s), each)...)
		}
	})
}

func TestNever14_worker_backs_off_from_a_read_only_server_and_recovers(t *testing.T) {
	onPostgresWorkers(t, func(t *testing.T, w *world) {
		w.outage(func() (end func()) {
			var database string
			w.must(w.db.QueryRowContext(t.Context(), `SELECT current_database()`).Scan(&database))
			end = sync.OnceFunc(func() {
				_, err := w.db.ExecContext(context.Background(), `ALTER DATABASE `+database+` RESET default_transaction_read_only`)
				w.must(err)
				w.endSessions()
			})
			t.Cleanup(end)
			w.exec(`ALTER DATABASE ` + database + ` SET default_transaction_read_only = on`)
			w.endSessions()
			return end
		}, nil)
	})
}

// A disk can't be filled everywhere; the driver says what a server with a full
// one does to each statement that writes.
func TestNever14_worker_backs_off_from_a_server_whose_disk_is_full_and_recovers(t *testing.T) {
	t.Run("postgres", func(t *testing.T) {
		w := newPostgres(t)
		var p *program
		w.outage(func() (end func()) {
			full := &pgconn.PgError{Severity: "ERROR", Code: "53100", Message: "could not extend file: No space left on device"}
			var ends []func()
			for _, write := range []string{"receive", "insert_message", "insert_work", "claim", "claim_suspect", "ack", "ack_numbers", "update_work", "insert_done", "extend", "INSERT INTO effect"} {
				ends = append(ends, p.lot.FailAll(write, full).Cancel)
			}
			return func() {
				for _, end := range ends {
					end()
				}
			}
		}, &p)
	})
}

// outage lets a program receive and work while the database can't, and checks
// that nothing is acknowledged, that the worker asks seldom, and that all goes on
// by itself afterwards.
func (w *world) outage(begin func() (end func()), program **program) {
	w.Helper()
	var failed atomic.Int64
	p := w.program(0, inbox.Options{Observer: &postroom.Observer{
		Claimed: func(_ context.Context, e postroom.ClaimedEvent) {
			if e.Err != nil {
				failed.Add(1)
			}
		},
	}})
	if program != nil {
		*program = p
	}
	const poll = 20 * time.Millisecond
	o := swift()
	o.Poll, o.MaxPoll, o.ReapEvery = poll, 16*poll, leaseTime
	p.start(o, p.handler(plainly))
	before := numbered("before", 20)
	w.receiveAll(before...)
	w.allDone()
	end := begin()
	began := time.Now()
	for _, id := range numbered("during", 10) {
		if _, err := p.in.Receive(w.Context(), message(id)); err == nil {
			w.Errorf("message %s was acknowledged", id)
		}
	}
	// After 1, 2, 4, 8 and then every 16 polls.
	w.eventually("the worker asked a few times", func() bool { return failed.Load() >= 5 })
	most := int64(6 + time.Since(began)/o.MaxPoll)
	if n := failed.Load(); n > most {
		w.Errorf("the worker asked %d times within %s, at most %d are due", n, time.Since(began), most)
	}
	if n := w.count(`SELECT count(*) FROM postroom_message WHERE id LIKE 'during%'`); n != 0 {
		w.Errorf("%d messages of the outage are there", n)
	}
	end()
	for _, id := range numbered("during", 10) {
		w.eventually("intake recovers", func() bool {
			_, err := p.in.Receive(w.Context(), message(id))
			return err == nil
		})
	}
	w.allDone()
	w.onceEach(append(before, numbered("during", 10)...)...)
}

// endSessions lets the server end the sessions of all programs, as it does when
// it restarts.
func (w *world) endSessions() int {
	w.Helper()
	return w.count(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND application_name = '` + programName + `'`)
}

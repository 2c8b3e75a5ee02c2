package never

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/pgxstore"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/tests/park"
)

// native is what a child is told in place of a driver when it is to work through
// pgxstore.
const native = "pgxstore"

// onWorkers runs a test of a worker with each kind of store.
func onWorkers(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("sqlite", func(t *testing.T) { test(t, newSQLite(t)) })
	onPostgresWorkers(t, test)
}

// onPostgresWorkers runs it with both ways to PostgreSQL.
func onPostgresWorkers(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("postgres", func(t *testing.T) { test(t, newPostgres(t)) })
	t.Run("pgxstore", func(t *testing.T) {
		w := newPostgres(t)
		w.native = true
		test(t, w)
	})
}

// A program has an inbox, on a store and a pool of its own.
type program struct {
	testing.TB
	world *world
	lot   *park.Lot
	in    *inbox.Inbox
}

// programName is what the sessions of programs are known by to the server.
const programName = "program"

// program makes one. No conns means that there are enough.
func (w *world) program(conns int, opts inbox.Options) *program {
	w.Helper()
	p := &program{TB: w.TB, world: w, lot: park.New()}
	dsn := w.dsn
	if w.postgres() {
		dsn += "&application_name=" + programName
	}
	var store box.Store
	var err error
	conns = cmp.Or(conns, 20)
	if w.native {
		store, err = pgxstore.Open(p.lot.OpenPool(w.TB, dsn, conns), pgxstore.Options{})
	} else {
		db := p.lot.Open(w.TB, w.driver, dsn)
		db.SetMaxOpenConns(conns)
		store, err = sqlstore.Open(db, w.dialect, sqlstore.Options{})
	}
	w.must(err)
	opts.Logger = slog.New(slog.DiscardHandler)
	p.in, err = inbox.New(store, consumer, opts)
	w.must(err)
	w.Cleanup(func() {
		if err := p.in.Close(); err != nil {
			w.Errorf("close the inbox: %v", err)
		}
	})
	return p
}

// A writer writes in the transaction of a handler.
type writer func(ctx context.Context, query string) error

// effect writes what a handler does for a message, into a table where the same
// can be done twice.
func (write writer) effect(ctx context.Context, m *postroom.Message) error {
	return write(ctx, "INSERT INTO effect (id) VALUES ('"+m.ID+"')")
}

// handler makes a transactional handler for the program's store.
func (p *program) handler(do func(ctx context.Context, write writer, m *postroom.Message) error) postroom.Handler {
	if p.world.native {
		return pgxstore.Handler(func(ctx context.Context, tx pgx.Tx, m *postroom.Message) error {
			return do(ctx, func(ctx context.Context, query string) error { _, err := tx.Exec(ctx, query); return err }, m)
		})
	}
	return sqlstore.Handler(func(ctx context.Context, tx *sql.Tx, m *postroom.Message) error {
		return do(ctx, func(ctx context.Context, query string) error { _, err := tx.ExecContext(ctx, query); return err }, m)
	})
}

// plainly is a transactional handler that does its effect and nothing else.
func plainly(ctx context.Context, write writer, m *postroom.Message) error {
	return write.effect(ctx, m)
}

// swift are options of a worker that waits for nothing but the ends of leases.
func swift() inbox.WorkerOptions {
	const often = 20 * time.Millisecond
	return inbox.WorkerOptions{
		Lease: leaseTime, Poll: often, MaxPoll: often, ReapEvery: often,
		Backoff: func(int) time.Duration { return often },
		// A busy SQLite file may refuse a handler many times so soon.
		MaxAttempts: 10_000,
	}
}

func (p *program) worker(o inbox.WorkerOptions, h postroom.Handler) *inbox.Worker {
	p.Helper()
	mux := inbox.NewMux()
	if err := mux.Handle("topic", h); err != nil {
		p.Fatal(err)
	}
	return inbox.NewWorker(p.in, mux, o)
}

// start runs a worker until stop, or the end of the test.
func (p *program) start(o inbox.WorkerOptions, h postroom.Handler) (stop func()) {
	p.Helper()
	worker := p.worker(o, h)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		p.Helper()
		cancel()
		if p.Failed() {
			p.lot.Clear()
			worker.Halt()
		}
		if err := <-ended; err != nil {
			p.Errorf("the worker ended: %v", err)
		}
	})
	p.Cleanup(stop)
	return stop
}

// serve runs the worker of a child until ctx is done, and ends the child if it
// can't.
func (p *program) serve(ctx context.Context, worker *inbox.Worker) {
	if err := worker.Run(ctx); err != nil {
		say("failed:", err)
		os.Exit(1)
	}
}

// finish lets a new program work until no message is live, then stops it.
func (w *world) finish() {
	w.Helper()
	p := w.program(0, inbox.Options{})
	stop := p.start(swift(), p.handler(plainly))
	w.allDone()
	stop()
}

// allDone waits until no message is live but those that are Dead.
func (w *world) allDone() {
	w.Helper()
	w.eventually("all messages are done", func() bool {
		return w.count(`SELECT count(*) FROM postroom_work WHERE stage <> `+fmt.Sprint(int(postroom.StageDead))) == 0
	})
}

// receiveAll takes in messages of these names.
func (w *world) receiveAll(ids ...string) {
	w.Helper()
	var puts []box.Put
	for _, id := range ids {
		puts = append(puts, put(box.Queue, message(id)))
	}
	results, err := w.store.Put(w.Context(), nil, puts)
	w.must(err)
	for i := range results {
		w.must(results[i].Err)
	}
}

// onceEach checks that each message is done, with its effect there once.
func (w *world) onceEach(ids ...string) {
	w.Helper()
	for _, id := range ids {
		if rec, err := w.store.Get(w.Context(), key(id)); err != nil || rec.State != postroom.StateDone {
			w.Errorf("message %s is %v after %d attempts and %d lost leases, error %q (%v), want done", id, rec.State, rec.Attempt, rec.Lost, rec.LastError, err)
		}
		if n := w.effects(id); n != 1 {
			w.Errorf("the effect of %s is there %d times", id, n)
		}
	}
}

// untouched checks that a message waits as if nobody had ever run it.
func (w *world) untouched(id string) {
	w.Helper()
	rec, err := w.store.Get(w.Context(), key(id))
	w.must(err)
	if rec.Stage != postroom.StageReady || rec.Attempt != 0 || rec.Lost != 0 || rec.LastError != "" {
		w.Errorf("message %s is %v after %d attempts and %d lost leases, error %q; it should have cost nothing",
			id, rec.Stage, rec.Attempt, rec.Lost, rec.LastError)
	}
	if n := w.effects(id); n != 0 {
		w.Errorf("the effect of %s, which did not finish, is there %d times", id, n)
	}
}

// numbered gives n names.
func numbered(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return names
}

// ended waits for the end of a child and gives its exit code, -1 for a signal.
func (c *child) ended() (code int) {
	c.Helper()
	for c.lines.Scan() {
		if strings.HasPrefix(c.lines.Text(), "--- FAIL") {
			c.Errorf("the child failed: %s", c.lines.Text())
		}
	}
	err := c.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.Fatal(err)
	}
	return c.cmd.ProcessState.ExitCode()
}

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"maragu.dev/goqite"
)

// goqiteLite is goqite. It has no deduplication, groups, leases that are given
// back, or record of what was done: a message that is done is deleted.
type goqiteLite struct{ *liteFile }

func newGoqite(ctx context.Context, _ string) (system, error) {
	f, err := newLiteFile()
	if err != nil {
		return nil, err
	}
	g := &goqiteLite{f}
	return g, g.reset(ctx)
}

// goqiteTables are the tables that goqite's documentation asks for.
const goqiteTables = `
CREATE TABLE goqite (
	id TEXT PRIMARY KEY DEFAULT ('m_' || lower(hex(randomblob(16)))),
	created TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ')),
	updated TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ')),
	queue TEXT NOT NULL,
	body BLOB NOT NULL,
	timeout TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ')),
	received INTEGER NOT NULL DEFAULT 0,
	priority INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TRIGGER goqite_updated_timestamp AFTER UPDATE ON goqite BEGIN
	UPDATE goqite SET updated = strftime('%Y-%m-%dT%H:%M:%fZ') WHERE id = old.id;
END;
CREATE INDEX goqite_queue_priority_created_idx ON goqite (queue, priority DESC, created);
CREATE TABLE bench_effect (n INTEGER PRIMARY KEY, id TEXT NOT NULL)`

func (g *goqiteLite) name() string { return "goqite" }

func (g *goqiteLite) beside(ctx context.Context) (system, error) { return newGoqite(ctx, "") }

func (g *goqiteLite) child() (kind, dsn string) { return "goqite", g.folder }

func (g *goqiteLite) reset(ctx context.Context) error {
	return errors.Join(g.remove(), g.execute(ctx, goqiteTables))
}

// fill knows messages that wait, now or until later; goqite has no others.
func (g *goqiteLite) fill(ctx context.Context, kind rows, n int) error {
	due := "'-1 seconds'"
	switch kind {
	case ready:
	case scheduled:
		due = "'7 days'"
	default:
		return errNotApplicable
	}
	return g.execute(ctx, fmt.Sprintf(`WITH RECURSIVE new(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM new WHERE n < %d)
		INSERT INTO goqite (queue, body, timeout)
		SELECT 'bench', CAST(printf('%%.256c', 'a') AS BLOB), strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', 'now', %s) FROM new`, n, due),
		"ANALYZE", "PRAGMA wal_checkpoint(PASSIVE)")
}

func (g *goqiteLite) open(context.Context) (session, error) {
	db, err := g.connect()
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return &goqiteSession{db: db, queue: newQueue(db, 0)}, nil
}

func newQueue(db *sql.DB, timeout time.Duration) *goqite.Queue {
	return goqite.New(goqite.NewOpts{DB: db, Name: "bench", Timeout: timeout})
}

type goqiteSession struct {
	db    *sql.DB
	queue *goqite.Queue
}

func (s *goqiteSession) close() { _ = s.db.Close() }

func (s *goqiteSession) receive(ctx context.Context, m message) error {
	return s.queue.Send(ctx, goqite.Message{Body: m.payload})
}

func (s *goqiteSession) receiveAll(ctx context.Context, ms []message) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for _, m := range ms {
		if err := s.queue.SendTx(ctx, tx, goqite.Message{Body: m.payload}); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// goqiteAtOnce is how many loops serve it best: there is one writer, and more
// loops only wait for it.
const goqiteAtOnce = 10

// work receives, handles and deletes one message at a time, so many at once.
func (s *goqiteSession) work(ctx context.Context, w work) error {
	queue := newQueue(s.db, w.lease)
	group, ctx := errgroup.WithContext(ctx)
	loops := w.concurrency
	if !w.holding {
		loops = min(loops, goqiteAtOnce)
	}
	for range loops {
		group.Go(func() error {
			for {
				m, err := queue.ReceiveAndWait(ctx, barePoll)
				if err != nil {
					return err
				}
				w.started(message{id: string(m.ID), payload: m.Body})
				if err := s.end(ctx, queue, m, w); err != nil {
					return err
				}
				w.settled(1)
			}
		})
	}
	if err := group.Wait(); ctx.Err() == nil {
		return err
	}
	return nil
}

func (s *goqiteSession) end(ctx context.Context, queue *goqite.Queue, m *goqite.Message, w work) error {
	if !w.inserting {
		return queue.Delete(ctx, m.ID)
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, "INSERT INTO bench_effect (id) VALUES (?)", string(m.ID)); err != nil {
		return err
	}
	if err := queue.DeleteTx(ctx, tx, m.ID); err != nil {
		return err
	}
	return tx.Commit()
}

package main

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"errors"
	"time"
)

//go:embed bare_lite.sql
var bareLiteText string

// bareLite makes the row changes of Postroom on SQLite by hand.
type bareLite struct{ *liteFile }

func newBareLite(ctx context.Context, _ string) (system, error) {
	f, err := newLiteFile()
	if err != nil {
		return nil, err
	}
	return &bareLite{f}, migrateLite(ctx, f)
}

func (b *bareLite) name() string { return "bare SQL" }

func (b *bareLite) beside(ctx context.Context) (system, error) { return newBareLite(ctx, "") }

func (b *bareLite) share(with system) system { return &bareLite{with.(*postroomLite).liteFile} }

func (b *bareLite) child() (kind, dsn string) { return "bare-sqlite", b.folder }

func (b *bareLite) reset(ctx context.Context) error { return resetLite(ctx, b.liteFile) }

func (b *bareLite) fill(ctx context.Context, kind rows, n int) error {
	return fillLite(ctx, b.liteFile, kind, n)
}

func (b *bareLite) open(ctx context.Context) (session, error) { return b.session(ctx, bareLiteText) }

func (b *bareLite) session(ctx context.Context, text string) (*bareLiteSession, error) {
	texts, err := named(text)
	if err != nil {
		return nil, err
	}
	db, err := b.connect()
	if err != nil {
		return nil, err
	}
	// There is one writer anyway, and a mutex is cheaper than a busy file.
	db.SetMaxOpenConns(1)
	s := &bareLiteSession{db: db, prepared: map[string]*sql.Stmt{}, wake: make(chan struct{}, 1)}
	for name, text := range texts {
		if s.prepared[name], err = db.PrepareContext(ctx, text); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return s, nil
}

type bareLiteSession struct {
	db       *sql.DB
	prepared map[string]*sql.Stmt
	heads    bool
	wake     chan struct{}
}

func (s *bareLiteSession) close() { _ = s.db.Close() }

// write runs fn in a transaction.
func (s *bareLiteSession) write(ctx context.Context, fn func(exec func(name string, args ...any) error, tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	err = fn(func(name string, args ...any) error {
		_, err := tx.StmtContext(ctx, s.prepared[name]).ExecContext(ctx, args...)
		return err
	}, tx)
	if err != nil {
		return err
	}
	return tx.Commit()
}

func (s *bareLiteSession) receive(ctx context.Context, m message) error {
	err := s.receiveAll(ctx, []message{m})
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return err
}

func (s *bareLiteSession) receiveAll(ctx context.Context, ms []message) error {
	return s.write(ctx, func(exec func(string, ...any) error, tx *sql.Tx) error {
		var last int64
		if err := tx.StmtContext(ctx, s.prepared["number"]).QueryRowContext(ctx, len(ms)).Scan(&last); err != nil {
			return err
		}
		message, now := tx.StmtContext(ctx, s.prepared["message"]), time.Now().UnixMicro()
		for i, m := range ms {
			seq := last - int64(len(ms)) + int64(i) + 1
			done, err := message.ExecContext(ctx, seq, m.id, m.payload, now)
			if err != nil {
				return err
			}
			if n, err := done.RowsAffected(); err != nil || n == 0 {
				continue
			}
			if err := exec("work", seq, now); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *bareLiteSession) work(ctx context.Context, w work) error {
	done, err := s.prepared["lanes"].ExecContext(ctx)
	if err != nil {
		return err
	}
	n, err := done.RowsAffected()
	s.heads = n > 0
	return errors.Join(err, bareLoops(ctx, s, s.wake, 1, w))
}

func (s *bareLiteSession) claim(ctx context.Context, owner string, limit int, lease time.Duration) (claimed []bareMessage, err error) {
	name := "claim"
	if s.heads {
		name = "claim_heads"
	}
	err = s.write(ctx, func(exec func(string, ...any) error, tx *sql.Tx) error {
		found, err := tx.StmtContext(ctx, s.prepared[name]).QueryContext(ctx, limit, owner, time.Now().Add(lease).UnixMicro())
		seqs, err := collect(found, err, func(rows *sql.Rows) (seq int64, err error) {
			return seq, rows.Scan(&seq)
		})
		if err != nil || len(seqs) == 0 {
			return err
		}
		if s.heads {
			if err := exec("hold", list(seqs)); err != nil {
				return err
			}
		}
		found, err = tx.StmtContext(ctx, s.prepared["content"]).QueryContext(ctx, list(seqs))
		claimed, err = collect(found, err, func(rows *sql.Rows) (m bareMessage, err error) {
			return m, rows.Scan(&m.seq, &m.id, &m.payload)
		})
		return err
	})
	return claimed, err
}

func (s *bareLiteSession) settle(ctx context.Context, owner string, seqs []int64) error {
	return s.write(ctx, func(exec func(string, ...any) error, _ *sql.Tx) error { return s.end(exec, owner, seqs) })
}

func (s *bareLiteSession) insertAndSettle(ctx context.Context, owner string, m bareMessage) error {
	return s.write(ctx, func(exec func(string, ...any) error, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO bench_effect (id) VALUES (?)", m.id); err != nil {
			return err
		}
		return s.end(exec, owner, []int64{m.seq})
	})
}

func (s *bareLiteSession) end(exec func(string, ...any) error, owner string, seqs []int64) error {
	if s.heads {
		if err := exec("vacate", list(seqs)); err != nil {
			return err
		}
	}
	return errors.Join(exec("done", list(seqs), owner, time.Now().UnixMicro()), exec("settle", list(seqs), owner))
}

func (s *bareLiteSession) reap(ctx context.Context) error {
	_, err := s.prepared["reap"].ExecContext(ctx, time.Now().UnixMicro())
	return err
}

// list writes numbers so that json_each can read them.
func list(seqs []int64) string {
	text, _ := json.Marshal(seqs)
	return string(text)
}

// collect reads all rows of a query.
func collect[T any](found *sql.Rows, err error, scan func(*sql.Rows) (T, error)) (all []T, _ error) {
	if err != nil {
		return nil, err
	}
	defer func() { _ = found.Close() }()
	for found.Next() {
		one, err := scan(found)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, found.Err()
}

package main

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed bare_pg.sql
var barePgText string

// barePg makes the row changes of Postroom, in its tables, by statements that
// one would write by hand, through the same driver.
type barePg struct{ *pgDatabase }

func newBarePg(ctx context.Context, server string) (system, error) {
	d, err := newPgDatabase(ctx, server)
	if err != nil {
		return nil, err
	}
	return &barePg{d}, migratePostroom(ctx, d)
}

func (b *barePg) name() string { return "bare SQL" }

func (b *barePg) beside(ctx context.Context) (system, error) { return newBarePg(ctx, b.server) }

func (b *barePg) child() (kind, dsn string) { return "bare-pg", b.dsn }

func (b *barePg) reset(ctx context.Context) error { return resetPostroom(ctx, b.pgDatabase) }

func (b *barePg) fill(ctx context.Context, kind rows, n int) error {
	return fillPostroom(ctx, b.pgDatabase, kind, n)
}

func (b *barePg) open(ctx context.Context) (session, error) { return b.session(ctx, barePgText) }

func (b *barePg) session(ctx context.Context, text string) (*barePgSession, error) {
	statements, err := named(text)
	if err != nil {
		return nil, err
	}
	pool, err := b.pool(ctx)
	if err != nil {
		return nil, err
	}
	return &barePgSession{pool: pool, statements: statements, wake: make(chan struct{}, 1)}, nil
}

type barePgSession struct {
	pool       *pgxpool.Pool
	statements map[string]string
	wake       chan struct{}
}

func (s *barePgSession) close() { s.pool.Close() }

func (s *barePgSession) receive(ctx context.Context, m message) error {
	_, err := s.pool.Exec(ctx, s.statements["receive"], m.id, m.payload)
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return err
}

func (s *barePgSession) receiveAll(ctx context.Context, ms []message) error {
	ids, payloads := make([]string, len(ms)), make([][]byte, len(ms))
	for i, m := range ms {
		ids[i], payloads[i] = m.id, m.payload
	}
	_, err := s.pool.Exec(ctx, s.statements["receive_all"], ids, payloads)
	return err
}

func (s *barePgSession) work(ctx context.Context, w work) error {
	tag, err := s.pool.Exec(ctx, s.statements["lanes"])
	if err != nil {
		return err
	}
	return bareLoops(ctx, &barePgLoop{s, tag.RowsAffected() > 0}, s.wake, barePgLoops, w)
}

const barePgLoops = 2

// barePgLoop claims by lanes where there are any.
type barePgLoop struct {
	*barePgSession
	heads bool
}

func (l *barePgLoop) statement(name string) string {
	if l.heads {
		return l.statements[name+"_heads"]
	}
	return l.statements[name]
}

func (l *barePgLoop) claim(ctx context.Context, owner string, limit int, lease time.Duration) ([]bareMessage, error) {
	found, err := l.pool.Query(ctx, l.statement("claim"), limit, owner, lease.Microseconds())
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, func(row pgx.CollectableRow) (m bareMessage, err error) {
		return m, row.Scan(&m.seq, &m.id, &m.payload)
	})
}

func (l *barePgLoop) settle(ctx context.Context, owner string, seqs []int64) error {
	_, err := l.pool.Exec(ctx, l.statement("settle"), seqs, owner)
	return err
}

func (l *barePgLoop) insertAndSettle(ctx context.Context, owner string, m bareMessage) error {
	return pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO bench_effect (id) VALUES ($1)", m.id); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, l.statement("settle"), []int64{m.seq}, owner)
		return err
	})
}

func (l *barePgLoop) reap(ctx context.Context) error {
	_, err := l.pool.Exec(ctx, l.statements["reap"])
	return err
}

// share works on the tables that Postroom has filled.
func (b *barePg) share(with system) system { return &barePg{with.(*postroomPg).pgDatabase} }

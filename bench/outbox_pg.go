package main

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/pgxstore"
)

// outboxPg is Postroom's outbox on PostgreSQL.
type outboxPg struct{ *postroomPg }

func newOutboxPg(ctx context.Context, server string) (system, error) {
	d, err := newPgDatabase(ctx, server)
	if err != nil {
		return nil, err
	}
	return &outboxPg{&postroomPg{d}}, migratePostroom(ctx, d)
}

func (p *outboxPg) reset(ctx context.Context) error {
	return p.execute(ctx, outboxed(truncatePostroom))
}

func (p *outboxPg) fill(ctx context.Context, kind rows, n int) error {
	return fillTables(ctx, p.pgDatabase, outboxed, kind, n)
}

func (p *outboxPg) open(ctx context.Context) (session, error) {
	pool, err := p.pool(ctx)
	if err != nil {
		return nil, err
	}
	store, err := pgxstore.Open(pool, pgxstore.Options{})
	if err != nil {
		return nil, err
	}
	inTx := func(ctx context.Context, fn func(postroom.Tx) error) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return fn(pgxstore.Tx(tx)) })
	}
	return newOutboxSession(store, inTx, func() {
		_ = store.Close()
		pool.Close()
	})
}

// bareOutboxPg makes the row changes of the outbox by hand.
type bareOutboxPg struct{ *barePg }

func newBareOutboxPg(ctx context.Context, server string) (system, error) {
	d, err := newPgDatabase(ctx, server)
	if err != nil {
		return nil, err
	}
	return &bareOutboxPg{&barePg{d}}, migratePostroom(ctx, d)
}

func (b *bareOutboxPg) reset(ctx context.Context) error {
	return b.execute(ctx, outboxed(truncatePostroom))
}

func (b *bareOutboxPg) fill(ctx context.Context, kind rows, n int) error {
	return fillTables(ctx, b.pgDatabase, outboxed, kind, n)
}

func (b *bareOutboxPg) open(ctx context.Context) (session, error) {
	s, err := b.session(ctx, outboxed(barePgText))
	return &bareOutboxPgSession{s}, err
}

// bareOutboxPgSession receives in a transaction, as callers with writes of their
// own do. Its two loops claim whole batches each.
type bareOutboxPgSession struct{ *barePgSession }

func (s *bareOutboxPgSession) receive(ctx context.Context, m message) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, s.statements["receive"], m.id, m.payload)
		return err
	})
}

func (s *bareOutboxPgSession) work(ctx context.Context, w work) error {
	w.concurrency *= barePgLoops
	return s.barePgSession.work(ctx, w)
}

package main

import (
	"context"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/sqlite"
)

// outboxLite is Postroom's outbox on SQLite.
type outboxLite struct{ *postroomLite }

func newOutboxLite(ctx context.Context, _ string) (system, error) {
	f, err := newLiteFile()
	if err != nil {
		return nil, err
	}
	return &outboxLite{&postroomLite{f}}, migrateLite(ctx, f)
}

func (p *outboxLite) fill(ctx context.Context, kind rows, n int) error {
	return fillLiteTables(ctx, p.liteFile, outboxed, kind, n)
}

func (p *outboxLite) open(context.Context) (session, error) {
	db, err := p.connect()
	if err != nil {
		return nil, err
	}
	// As bare SQL does it.
	db.SetMaxOpenConns(1)
	store, err := sqlstore.Open(db, sqlite.Dialect, sqlstore.Options{})
	if err != nil {
		return nil, err
	}
	inTx := func(ctx context.Context, fn func(postroom.Tx) error) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if err := fn(sqlstore.Tx(tx)); err != nil {
			return err
		}
		return tx.Commit()
	}
	return newOutboxSession(store, inTx, func() {
		_ = store.Close()
		_ = db.Close()
	})
}

// bareOutboxLite makes the row changes of the outbox on SQLite by hand.
type bareOutboxLite struct{ *bareLite }

func newBareOutboxLite(ctx context.Context, _ string) (system, error) {
	f, err := newLiteFile()
	if err != nil {
		return nil, err
	}
	return &bareOutboxLite{&bareLite{f}}, migrateLite(ctx, f)
}

func (b *bareOutboxLite) fill(ctx context.Context, kind rows, n int) error {
	return fillLiteTables(ctx, b.liteFile, outboxed, kind, n)
}

func (b *bareOutboxLite) open(ctx context.Context) (session, error) {
	return b.session(ctx, outboxed(bareLiteText))
}

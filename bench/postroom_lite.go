package main

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/sqlite"
)

// postroomLite is Postroom on SQLite.
type postroomLite struct{ *liteFile }

func newPostroomLite(ctx context.Context, _ string) (system, error) {
	f, err := newLiteFile()
	if err != nil {
		return nil, err
	}
	return &postroomLite{f}, migrateLite(ctx, f)
}

func migrateLite(ctx context.Context, f *liteFile) (err error) {
	db, err := f.connect()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	store, err := sqlstore.Open(db, sqlite.Dialect, sqlstore.Options{})
	if err != nil {
		return err
	}
	if err := store.Migrate(ctx); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "CREATE TABLE bench_effect (n INTEGER PRIMARY KEY, id TEXT NOT NULL)")
	return err
}

func (p *postroomLite) name() string { return ours }

func (p *postroomLite) beside(ctx context.Context) (system, error) { return newPostroomLite(ctx, "") }

func (p *postroomLite) child() (kind, dsn string) { return "postroom-sqlite", p.folder }

func (p *postroomLite) reset(ctx context.Context) error { return resetLite(ctx, p.liteFile) }

func resetLite(ctx context.Context, f *liteFile) error {
	return errors.Join(f.remove(), migrateLite(ctx, f))
}

func (p *postroomLite) fill(ctx context.Context, kind rows, n int) error {
	return fillLite(ctx, p.liteFile, kind, n)
}

//go:embed fill_lite.sql
var fillLiteText string

func fillLite(ctx context.Context, f *liteFile, kind rows, n int) error {
	return fillLiteTables(ctx, f, asInbox, kind, n)
}

func fillLiteTables(ctx context.Context, f *liteFile, as func(string) string, kind rows, n int) error {
	statements, err := named(as(fillLiteText))
	if err != nil {
		return err
	}
	group, names := "''", []string{"message"}
	switch kind {
	case ready:
		names = append(names, "ready")
	case grouped:
		group, names = fmt.Sprintf("'g' || (n %% %d)", groups), append(names, "arrived")
	case finished:
		names = append(names, "finished")
	case scheduled:
		names = append(names, "scheduled")
	case queued:
		group, names = "'one'", append(names, "queued", "head", "lane")
	}
	var all []string
	for _, name := range append(names, "sequence") {
		all = append(all, strings.NewReplacer("{{n}}", fmt.Sprint(n), "{{group}}", group).Replace(statements[name]))
	}
	return f.execute(ctx, "BEGIN;"+strings.Join(all, ";")+";COMMIT", "ANALYZE", "PRAGMA wal_checkpoint(PASSIVE)")
}

func (p *postroomLite) open(context.Context) (session, error) {
	db, err := p.connect()
	if err != nil {
		return nil, err
	}
	store, err := sqlstore.Open(db, sqlite.Dialect, sqlstore.Options{})
	if err != nil {
		return nil, err
	}
	return newPostroomSession(store, sqlHandler, func() {
		_ = store.Close()
		_ = db.Close()
	})
}

func sqlHandler(started func(message)) postroom.TxHandler {
	return sqlstore.Handler(func(ctx context.Context, tx *sql.Tx, m *postroom.Message) error {
		started(message{id: m.ID, payload: m.Payload})
		_, err := tx.ExecContext(ctx, "INSERT INTO bench_effect (id) VALUES (?)", m.ID)
		return err
	})
}

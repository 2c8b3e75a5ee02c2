package main

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/pgxstore"
)

// postroomPg is Postroom on PostgreSQL.
type postroomPg struct{ *pgDatabase }

func newPostroomPg(ctx context.Context, server string) (system, error) {
	d, err := newPgDatabase(ctx, server)
	if err != nil {
		return nil, err
	}
	return &postroomPg{d}, migratePostroom(ctx, d)
}

const effectTable = "CREATE TABLE bench_effect (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL)"

func migratePostroom(ctx context.Context, d *pgDatabase) error {
	pool, err := d.pool(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	store, err := pgxstore.Open(pool, pgxstore.Options{})
	if err != nil {
		return err
	}
	if err := store.Migrate(ctx); err != nil {
		return err
	}
	return d.execute(ctx, effectTable)
}

func (p *postroomPg) name() string { return "Postroom" }

func (p *postroomPg) beside(ctx context.Context) (system, error) { return newPostroomPg(ctx, p.server) }

func (p *postroomPg) child() (kind, dsn string) { return "postroom-pg", p.dsn }

func (p *postroomPg) open(ctx context.Context) (session, error) {
	pool, err := p.pool(ctx)
	if err != nil {
		return nil, err
	}
	store, err := pgxstore.Open(pool, pgxstore.Options{})
	if err != nil {
		return nil, err
	}
	return newPostroomSession(store, pgHandler, func() {
		_ = store.Close()
		pool.Close()
	})
}

func pgHandler(started func(message)) postroom.TxHandler {
	return pgxstore.Handler(func(ctx context.Context, tx pgx.Tx, m *postroom.Message) error {
		started(message{id: m.ID, payload: m.Payload})
		_, err := tx.Exec(ctx, "INSERT INTO bench_effect (id) VALUES ($1)", m.ID)
		return err
	})
}

func (p *postroomPg) reset(ctx context.Context) error { return resetPostroom(ctx, p.pgDatabase) }

const truncatePostroom = "TRUNCATE postroom_message, postroom_work, postroom_claim, postroom_done, postroom_lane, postroom_total, bench_effect"

func resetPostroom(ctx context.Context, d *pgDatabase) error { return d.execute(ctx, truncatePostroom) }

func (p *postroomPg) fill(ctx context.Context, kind rows, n int) error {
	return fillPostroom(ctx, p.pgDatabase, kind, n)
}

//go:embed fill_pg.sql
var fillPg string

func fillPostroom(ctx context.Context, d *pgDatabase, kind rows, n int) error {
	return fillTables(ctx, d, asInbox, kind, n)
}

// asInbox leaves statements as they are written, for the tables of an inbox.
func asInbox(text string) string { return text }

// fillTables lets the server write the rows: a message each, and what the kind
// of row needs besides. The statements are adapted to the tables by as.
func fillTables(ctx context.Context, d *pgDatabase, as func(string) string, kind rows, n int) error {
	statements, err := named(as(fillPg))
	if err != nil {
		return err
	}
	group, table, names := "''", "postroom_work", []string(nil)
	switch kind {
	case ready:
		names = []string{"ready"}
	case grouped:
		group, names = fmt.Sprintf("'g' || seq %% %d", groups), []string{"arrived"}
	case finished:
		table, names = "postroom_done", []string{"finished"}
	case scheduled:
		names = []string{"scheduled"}
	case queued:
		group, names = "'one'", []string{"queued", "head"}
	}
	first, err := d.number(ctx, strings.ReplaceAll(statements["numbers"], "{{n}}", fmt.Sprint(n)))
	if err != nil {
		return err
	}
	fillIn := strings.NewReplacer("{{n}}", fmt.Sprint(n), "{{first}}", fmt.Sprint(first), "{{group}}", group)
	besides := tableFill{table: as(table)}
	for _, name := range names {
		besides.statements = append(besides.statements, fillIn.Replace(statements[name]))
	}
	message := tableFill{as("postroom_message"), []string{fillIn.Replace(statements["message"])}}
	if err := d.load(ctx, n, message, besides); err != nil {
		return fmt.Errorf("fill %d: %w", n, err)
	}
	return d.execute(ctx, as("VACUUM ANALYZE postroom_message, postroom_work, postroom_done, postroom_lane"))
}

// named splits a file of statements, each below a line "-- name: …".
func named(text string) (map[string]string, error) {
	statements := map[string]string{}
	for _, part := range strings.Split(text, "-- name: ")[1:] {
		name, statement, ok := strings.Cut(part, "\n")
		if !ok {
			return nil, fmt.Errorf("statement %q is empty", name)
		}
		statements[strings.TrimSpace(name)] = strings.TrimSuffix(strings.TrimSpace(statement), ";")
	}
	return statements, nil
}

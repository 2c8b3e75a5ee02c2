package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// pgConns is how many connections each system may open.
const pgConns = 100

// pgDatabase is one throwaway database on the server.
type pgDatabase struct {
	server, dsn, database string
}

func newPgDatabase(ctx context.Context, server string) (*pgDatabase, error) {
	dsn, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("the DSN of PostgreSQL is not a URL: %w", err)
	}
	name := "bench_" + strings.ToLower(rand.Text())
	dsn.Path = "/" + name
	d := &pgDatabase{server: server, dsn: dsn.String(), database: name}
	return d, execute(ctx, server, "CREATE DATABASE "+name)
}

func (d *pgDatabase) close(ctx context.Context) error {
	return execute(ctx, d.server, "DROP DATABASE "+d.database+" WITH (FORCE)")
}

func (d *pgDatabase) execute(ctx context.Context, statements ...string) error {
	return execute(ctx, d.dsn, statements...)
}

func execute(ctx context.Context, dsn string, statements ...string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

func (d *pgDatabase) pool(ctx context.Context) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(d.dsn)
	if err != nil {
		return nil, err
	}
	config.MaxConns = pgConns
	return pgxpool.NewWithConfig(ctx, config)
}

// number asks for one.
func (d *pgDatabase) number(ctx context.Context, query string) (n int64, err error) {
	conn, err := pgx.Connect(ctx, d.dsn)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close(ctx) }()
	err = conn.QueryRow(ctx, query).Scan(&n)
	return n, err
}

// written is the position in the log ahead of the tables.
func (d *pgDatabase) written(ctx context.Context) (int64, error) {
	return d.number(ctx, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint")
}

// hold opens a transaction that sees the database as it is now, so that vacuum
// must keep all that goes from here on.
func (d *pgDatabase) hold(ctx context.Context) (func(), error) {
	conn, err := pgx.Connect(ctx, d.dsn)
	if err != nil {
		return nil, err
	}
	for _, statement := range []string{"BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM pg_class"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			_ = conn.Close(ctx)
			return nil, err
		}
	}
	return func() { _ = conn.Close(ctx) }, nil
}

// pgSettings are those that decide what a commit costs.
func pgSettings(ctx context.Context, server string) (version string, settings []string, err error) {
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, name := range []string{"fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size", "max_connections"} {
		var value string
		if err := conn.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&value); err != nil {
			return "", nil, err
		}
		if (name == "fsync" || name == "synchronous_commit") && value != "on" {
			return "", nil, fmt.Errorf("%s is %s: figures of a server that may lose commits are not comparable", name, value)
		}
		settings = append(settings, name+"="+value)
	}
	err = conn.QueryRow(ctx, "SELECT current_setting('server_version')").Scan(&version)
	return version, settings, err
}

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/postgres"
	"github.com/postroom/postroom/sqlstore/sqlite"
)

// tableSet are the flags that say which tables of a database are meant.
type tableSet struct {
	Schema string `placeholder:"NAME" help:"Database schema of the tables. Default: the connection's own. PostgreSQL only."`
	Prefix string `placeholder:"NAME" default:"postroom" help:"What the name of each table begins with. Default: ${default}."`
}

// database are the flags of a command that connects.
type database struct {
	URL      string `name:"db" env:"POSTROOM_DB" placeholder:"URL" help:"The database: postgres://…, sqlite:path or file:path."`
	tableSet `embed:""`
}

// An opened store is closed by its close.
type opened struct {
	*sqlstore.Store
	db      *sql.DB
	dialect *sqlstore.Dialect
	// label names the database in output, without its password.
	label string
}

func (o *opened) close() { _ = o.db.Close() }

const (
	connectTime = 10 * time.Second
	idleConns   = 32
)

// open connects. create lets a SQLite file come into being; otherwise it must be
// there, so that a mistyped path is an error and not an empty database.
func (d *database) open(ctx context.Context, create bool) (*opened, error) {
	dialect, err := dialectOf(d.URL)
	if err != nil {
		return nil, err
	}
	var db *sql.DB
	if dialect == sqlite.Dialect {
		db, err = openSQLite(d.URL, create)
	} else {
		db, err = openPostgres(d.URL)
	}
	if err != nil {
		return nil, err
	}
	// Workers use many connections at once, and a new one each time is slow.
	db.SetMaxIdleConns(idleConns)
	store, err := sqlstore.Open(db, dialect, sqlstore.Options{Schema: d.Schema, Prefix: d.Prefix})
	if err != nil {
		return nil, errors.Join(usageError{err}, db.Close())
	}
	o := &opened{store, db, dialect, redact(d.URL)}
	pingCtx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	if err := db.PingContext(pingCtx); err != nil {
		o.close()
		return nil, fmt.Errorf("connect to %s: %w\nCheck the address and the credentials in --db or POSTROOM_DB, and that the database is up", o.label, err)
	}
	return o, nil
}

// dialectOf reads the kind of database off a URL.
func dialectOf(raw string) (*sqlstore.Dialect, error) {
	if raw == "" {
		return nil, usagef("which database? Give --db or set POSTROOM_DB: postgres://user@host/db, sqlite:path or file:path")
	}
	scheme, _, ok := strings.Cut(raw, ":")
	switch strings.ToLower(scheme) {
	case "postgres", "postgresql":
		return postgres.Dialect, nil
	case "sqlite", "file":
		if ok {
			return sqlite.Dialect, nil
		}
	}
	return nil, usagef("database %q: use postgres://user@host/db, sqlite:path or file:path", raw)
}

func openPostgres(raw string) (*sql.DB, error) {
	// The cause would quote the part of the password that it stumbled over.
	if _, err := url.Parse(raw); err != nil {
		return nil, usagef("--db is not a valid URL: percent-encode what is special in its user and password (@ is %%40, / is %%2F, %% is %%25)")
	}
	config, err := pgx.ParseConfig(raw)
	if err != nil {
		return nil, usageError{err}
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "postroom"
	}
	return stdlib.OpenDB(*config), nil
}

func openSQLite(raw string, create bool) (*sql.DB, error) {
	dsn, path, err := sqliteDSN(raw, create)
	if err != nil {
		return nil, err
	}
	if !create {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("there is no SQLite file %s: check --db, or create it with 'postroom migrate'", path)
		}
	}
	return sql.Open("sqlite", dsn)
}

// sqliteDSN gives the driver's name for a database and the path of its file.
// What the URL itself sets is left as it is. Migrate turns on WAL, which is kept
// in the file.
func sqliteDSN(raw string, create bool) (dsn, path string, err error) {
	scheme, rest, _ := strings.Cut(raw, ":")
	rest, query, _ := strings.Cut(rest, "?")
	path = rest
	if strings.EqualFold(scheme, "file") {
		if path, err = url.PathUnescape(rest); err != nil {
			return "", "", usagef("--db: %w", err)
		}
	} else {
		rest = (&url.URL{Path: strings.TrimPrefix(rest, "//")}).EscapedPath()
		path = strings.TrimPrefix(path, "//")
	}
	if path == "" {
		return "", "", usagef("--db %s: the path of the file is missing, as in sqlite:box.db", raw)
	}
	settings, err := url.ParseQuery(query)
	if err != nil {
		return "", "", usagef("--db: %w", err)
	}
	if !settings.Has("mode") {
		settings.Set("mode", "rw")
		if create {
			settings.Set("mode", "rwc")
		}
	}
	for _, pragma := range []string{"busy_timeout(5000)", "synchronous(FULL)"} {
		name, _, _ := strings.Cut(pragma, "(")
		if !slices.ContainsFunc(settings["_pragma"], func(set string) bool { return strings.HasPrefix(strings.ToLower(set), name) }) {
			settings.Add("_pragma", pragma)
		}
	}
	return "file:" + rest + "?" + settings.Encode(), path, nil
}

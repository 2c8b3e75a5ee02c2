package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/mysql"
	"github.com/postroom/postroom/sqlstore/postgres"
	"github.com/postroom/postroom/sqlstore/sqlite"
	"github.com/postroom/postroom/sqlstore/sqlserver"
)

// A kind is one kind of database that this program can open.
type kind struct {
	dialect *sqlstore.Dialect
	// schemes are what a URL of this kind may begin with.
	schemes []string
	// example is such a URL.
	example string
	// open makes a pool. create lets a file come into being.
	open func(d *database, create bool) (*sql.DB, error)
}

// kinds are all that this program can open. Usage and help are made of it.
var kinds = []kind{
	{postgres.Dialect, []string{"postgres", "postgresql"}, "postgres://user@host/db", openPostgres},
	{mysql.Dialect, []string{"mysql", "mariadb"}, "mysql://user@host/db", openMySQL},
	{sqlserver.Dialect, []string{"sqlserver"}, "sqlserver://user@host?database=db", openSQLServer},
	{sqlite.Dialect, []string{"sqlite", "file"}, "sqlite:path", openSQLite},
}

// examples are the URLs that can be given, for messages.
func examples() string {
	list := make([]string, len(kinds))
	for i, k := range kinds {
		list[i] = k.example
	}
	last := len(list) - 1
	return strings.Join(list[:last], ", ") + " or " + list[last]
}

// dialectNames are the names that 'schema' takes instead of a URL.
func dialectNames() []string {
	list := make([]string, len(kinds))
	for i, k := range kinds {
		list[i] = k.dialect.Name
	}
	return list
}

// tableSet are the flags that say which tables of a database are meant.
type tableSet struct {
	Schema string `placeholder:"NAME" help:"Database schema of the tables; on MySQL and MariaDB a database. Default: the connection's own. SQLite has none."`
	Prefix string `placeholder:"NAME" default:"postroom" help:"What the name of each table begins with. Default: ${default}."`
}

// database are the flags of a command that connects.
type database struct {
	URL      string `name:"db" env:"POSTROOM_DB" placeholder:"URL" help:"The database: ${databases}."`
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
	kind, err := kindOf(d.URL)
	if err != nil {
		return nil, err
	}
	db, err := kind.open(d, create)
	if err != nil {
		return nil, err
	}
	// Workers use many connections at once, and a new one each time is slow.
	db.SetMaxIdleConns(idleConns)
	store, err := sqlstore.Open(db, kind.dialect, sqlstore.Options{Schema: d.Schema, Prefix: d.Prefix})
	if err != nil {
		return nil, errors.Join(usageError{err}, db.Close())
	}
	o := &opened{store, db, kind.dialect, redact(d.URL)}
	pingCtx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	if err := db.PingContext(pingCtx); err != nil {
		o.close()
		return nil, fmt.Errorf("connect to %s: %w\nCheck the address and the credentials in --db or POSTROOM_DB, and that the database is up", o.label, err)
	}
	return o, nil
}

// kindOf reads the kind of database off a URL.
func kindOf(raw string) (*kind, error) {
	if raw == "" {
		return nil, usagef("which database? Give --db or set POSTROOM_DB: %s", examples())
	}
	if scheme, _, ok := strings.Cut(raw, ":"); ok {
		for i := range kinds {
			if slices.Contains(kinds[i].schemes, strings.ToLower(scheme)) {
				return &kinds[i], nil
			}
		}
	}
	return nil, usagef("database %q: use %s", raw, examples())
}

// parseURL reads the URL of a server.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The cause would quote the part of the password that it stumbled over.
		return nil, usagef("--db is not a valid URL: percent-encode what is special in its user and password (@ is %%40, / is %%2F, %% is %%25)")
	}
	return u, nil
}

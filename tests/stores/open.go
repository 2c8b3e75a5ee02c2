// Package stores opens each store on a database of its own, and lets time pass
// there. Its tests prove every store with the suite.
package stores

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // driver "pgx"
	_ "github.com/lib/pq"              // driver "postgres"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/memstore"
	"github.com/postroom/postroom/pgxstore"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/mysql"
	"github.com/postroom/postroom/sqlstore/postgres"
	"github.com/postroom/postroom/sqlstore/sqlite"
	"github.com/postroom/postroom/sqlstore/sqlserver"
	"github.com/postroom/postroom/storetest"
	"github.com/postroom/postroom/tests/services"
	_ "modernc.org/sqlite" // driver "sqlite"
)

// A Store is what all of our stores can do.
type Store interface {
	box.Store
	box.Sweeper
	box.Lister
	box.Counter
	box.Pauser
	box.Migrator
}

// An Open store is empty, with its tables made.
type Open struct {
	Store Store
	// Advance lets time pass for the store.
	Advance func(d time.Duration)
	// DB reaches the database behind the store; nil for memory.
	DB *sql.DB
	// Tables begins the name of each table: schema, prefix, underscore.
	Tables string
	// Claims: leases are found by the claims that made them.
	Claims bool
}

// Harness is what the suite needs.
func (o Open) Harness() storetest.Harness {
	return storetest.Harness{Store: o.Store, Advance: o.Advance}
}

// Memory opens a store in memory, on a clock that goes on by itself as well.
func Memory(t testing.TB) Open {
	var ahead atomic.Int64
	store := memstore.New(memstore.Options{
		Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
	})
	t.Cleanup(func() { _ = store.Close() })
	return Open{Store: store, Advance: func(d time.Duration) { ahead.Add(int64(d)) }}
}

// SQLite opens a store on a file.
func SQLite(t testing.TB, opts sqlstore.Options) Open {
	t.Helper()
	db := Connect(t, "sqlite", "file:"+filepath.Join(t.TempDir(), "box.db"))
	store, err := sqlstore.Open(db, sqlite.Dialect, opts)
	return Ready(t, store, err, db, opts, SQLiteShift)
}

// Postgres opens a store on a fresh database of the server at dsn, through
// database/sql: driver is "pgx" or "postgres" (lib/pq).
func Postgres(t testing.TB, driver, dsn string, opts sqlstore.Options) Open {
	t.Helper()
	db := Connect(t, driver, services.FreshDatabase(t, dsn))
	store, err := sqlstore.Open(db, postgres.Dialect, opts)
	return Ready(t, store, err, db, opts, PostgresShift)
}

// MySQL opens a store on a fresh database of the MariaDB or MySQL server at dsn.
func MySQL(t testing.TB, dsn string, opts sqlstore.Options) Open {
	t.Helper()
	db := Connect(t, "mysql", services.FreshMySQL(t, dsn))
	store, err := sqlstore.Open(db, mysql.Dialect, opts)
	return Ready(t, store, err, db, opts, MySQLShift)
}

// SQLServer opens a store on a fresh database of the SQL Server at dsn.
func SQLServer(t testing.TB, dsn string, opts sqlstore.Options) Open {
	t.Helper()
	db := Connect(t, "sqlserver", services.FreshSQLServer(t, dsn))
	store, err := sqlstore.Open(db, sqlserver.Dialect, opts)
	return Ready(t, store, err, db, opts, SQLServerShift)
}

// Pgx opens a store on a fresh database of the server at dsn, through pgx itself.
func Pgx(t testing.TB, dsn string, opts pgxstore.Options) Open {
	t.Helper()
	dsn = services.FreshDatabase(t, dsn)
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store, err := pgxstore.Open(pool, opts)
	return Ready(t, store, err, Connect(t, "pgx", dsn), opts, PostgresShift)
}

// Connect opens a pool for the time of the test.
func Connect(t testing.TB, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Ready makes the tables of a store that was opened with err, on a database whose
// times go back by minus: SQLiteShift, MySQLShift, SQLServerShift or
// PostgresShift.
func Ready(t testing.TB, store Store, err error, db *sql.DB, opts sqlstore.Options, minus string) Open {
	t.Helper()
	if err == nil {
		err = store.Migrate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	tables := "postroom_"
	if opts.Prefix != "" {
		tables = opts.Prefix + "_"
	}
	if opts.Schema != "" {
		schema := opts.Schema
		if minus == PostgresShift {
			schema = `"` + schema + `"`
		}
		tables = schema + "." + tables
	}
	return Open{Store: store, DB: db, Tables: tables, Advance: shift(t, db, tables, minus), Claims: minus == PostgresShift}
}

// How a column of times goes back by some microseconds.
const (
	SQLiteShift    = "%s = %s - %d"
	MySQLShift     = SQLiteShift
	SQLServerShift = SQLiteShift
	PostgresShift  = "%s = %s - %d * interval '1 microsecond'"
)

// timeColumns are all columns that hold a time, by table.
var timeColumns = map[string][]string{
	"message": {"due_at", "expires_at", "occurred_at", "first_seen"},
	"work":    {"due", "retry", "next", "expires", "lease_until", "last_seen"},
	"done":    {"done_at", "last_seen"},
	"audit":   {"at"},
	"pause":   {"at"},
}

// shift lets time pass on a database whose clock can't be moved: it moves every
// stored time into the past instead.
func shift(t testing.TB, db *sql.DB, tables, minus string) func(time.Duration) {
	return func(d time.Duration) {
		t.Helper()
		columnsOf := maps.Clone(timeColumns)
		if minus == PostgresShift {
			columnsOf["claim"] = []string{"until"}
		}
		for table, columns := range columnsOf {
			set := ""
			for i, c := range columns {
				if i > 0 {
					set += ", "
				}
				set += fmt.Sprintf(minus, c, c, d.Microseconds())
			}
			if _, err := db.ExecContext(context.Background(), "UPDATE "+tables+table+" SET "+set); err != nil {
				t.Fatalf("let %v pass: %v", d, err)
			}
		}
	}
}

// Clear empties a database, which is faster than a fresh one.
func (o Open) Clear(t testing.TB) {
	t.Helper()
	all := []string{"work", "done", "message", "lane", "audit", "total", "pause"}
	if o.Claims {
		all = append(all, "claim")
	}
	for _, table := range all {
		if _, err := o.DB.ExecContext(context.Background(), "DELETE FROM "+o.Tables+table); err != nil {
			t.Fatalf("clear %s: %v", table, err)
		}
	}
}

package stores_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/pgxstore"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/postgres"
	"github.com/postroom/postroom/sqlstore/sqlite"
	"github.com/postroom/postroom/storetest"
	"github.com/postroom/postroom/tests/services"
	_ "modernc.org/sqlite"
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
func shift(t *testing.T, db *sql.DB, qualify, minus string) func(time.Duration) {
	return func(d time.Duration) {
		t.Helper()
		for table, columns := range timeColumns {
			set := ""
			for i, c := range columns {
				if i > 0 {
					set += ", "
				}
				set += fmt.Sprintf(minus, c, c, d.Microseconds())
			}
			if _, err := db.ExecContext(context.Background(), "UPDATE "+qualify+table+" SET "+set); err != nil {
				t.Fatalf("let %v pass: %v", d, err)
			}
		}
	}
}

const (
	sqliteShift   = "%s = %s - %d"
	postgresShift = "%s = %s - %d * interval '1 microsecond'"
)

func openSQLite(t *testing.T, opts sqlstore.Options) (*sqlstore.Store, *sql.DB) {
	t.Helper()
	db := openDB(t, "sqlite", "file:"+filepath.Join(t.TempDir(), "box.db"))
	return migrated(t, must(sqlstore.Open(db, sqlite.Dialect, opts))), db
}

func openPostgres(t *testing.T, driver, dsn string, opts sqlstore.Options) (*sqlstore.Store, *sql.DB) {
	t.Helper()
	db := openDB(t, driver, services.FreshDatabase(t, dsn))
	return migrated(t, must(sqlstore.Open(db, postgres.Dialect, opts))), db
}

func openPgx(t *testing.T, dsn string, opts pgxstore.Options) (*pgxstore.Store, *sql.DB) {
	t.Helper()
	dsn = services.FreshDatabase(t, dsn)
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return migrated(t, must(pgxstore.Open(pool, opts))), openDB(t, "pgx", dsn)
}

func openDB(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// must gives the store that was opened; what it can't open it reports when it is
// used.
func must[S any](store S, err error) func(*testing.T) S {
	return func(t *testing.T) S {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
}

func migrated[S box.Migrator](t *testing.T, open func(*testing.T) S) S {
	t.Helper()
	store := open(t)
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store
}

func TestSQLite(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		store, db := openSQLite(t, sqlstore.Options{})
		return storetest.Harness{Store: store, Advance: shift(t, db, "postroom_", sqliteShift)}
	})
}

func TestPostgres(t *testing.T) {
	for _, driver := range []string{"pgx", "postgres"} {
		t.Run(driver, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Harness {
				store, db := openPostgres(t, driver, services.Postgres(t), sqlstore.Options{})
				return storetest.Harness{Store: store, Advance: shift(t, db, "postroom_", postgresShift)}
			})
		})
	}
}

func TestPgx(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		store, db := openPgx(t, services.Postgres(t), pgxstore.Options{})
		return storetest.Harness{Store: store, Advance: shift(t, db, "postroom_", postgresShift)}
	})
}

func TestPgx18(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		store, db := openPgx(t, services.Postgres18(t), pgxstore.Options{Schema: "Orders", Prefix: "inbox"})
		return storetest.Harness{Store: store, Advance: shift(t, db, `"Orders".inbox_`, postgresShift)}
	})
}

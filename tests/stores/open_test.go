package stores_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
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

func openSQLite(t *testing.T, opts sqlstore.Options) (*sqlstore.Store, *sql.DB) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "box.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	store, err := sqlstore.Open(db, sqlite.Dialect, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store, db
}

func openPostgres(t *testing.T, opts sqlstore.Options) (*sqlstore.Store, *sql.DB) {
	t.Helper()
	db, err := sql.Open("pgx", services.FreshDatabase(t, services.Postgres(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	store, err := sqlstore.Open(db, postgres.Dialect, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store, db
}

func TestSQLite(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		store, db := openSQLite(t, sqlstore.Options{})
		return storetest.Harness{Store: store, Advance: shift(t, db, "postroom_", "%s = %s - %d")}
	})
}

func TestPostgres(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		store, db := openPostgres(t, sqlstore.Options{})
		return storetest.Harness{Store: store, Advance: shift(t, db, "postroom_", "%s = %s - %d * interval '1 microsecond'")}
	})
}

package stores_test

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/pgxstore"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/mysql"
	"github.com/postroom/postroom/sqlstore/postgres"
	"github.com/postroom/postroom/sqlstore/sqlite"
	"github.com/postroom/postroom/sqlstore/sqlserver"
	"github.com/postroom/postroom/storetest"
	"github.com/postroom/postroom/tests/services"
	"github.com/postroom/postroom/tests/stores"
)

// asRole gives the URL for another role without a password.
func asRole(t *testing.T, dsn, role string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	return u.String()
}

func execAll(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(context.Background(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// The suite passes under a role that may change rows and nothing else, with the
// grants that the store itself prints.
func TestIBX126_runtime_role_has_DML_only(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		dsn := services.FreshDatabase(t, services.Postgres(t))
		admin := stores.Connect(t, "pgx", dsn)
		role := "runtime_" + strings.ReplaceAll(postroom.NewID(), "-", "")
		execAll(t, admin, "CREATE ROLE "+role+" LOGIN")
		t.Cleanup(func() { execAll(t, admin, "DROP OWNED BY "+role, "DROP ROLE "+role) })
		opts := sqlstore.Options{Schema: "orders"}
		migration, err := sqlstore.Open(admin, postgres.Dialect, opts)
		open := stores.Ready(t, migration, err, admin, opts, stores.PostgresShift)
		grants, err := migration.Grants(role)
		if err != nil {
			t.Fatal(err)
		}
		execAll(t, admin, grants)

		pool, err := pgxpool.New(t.Context(), asRole(t, dsn, role))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		if _, err := pool.Exec(t.Context(), "CREATE TABLE orders.mine (x int)"); err == nil {
			t.Fatal("the runtime role can create tables, so that this proves nothing")
		}
		store, err := pgxstore.Open(pool, opts)
		if err != nil {
			t.Fatal(err)
		}
		return storetest.Harness{Store: store, Advance: open.Advance}
	})
}

func TestIBX128_a_server_that_requires_TLS(t *testing.T) {
	dsn := services.PostgresTLS(t)
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	var role string
	var encrypted bool
	row := pool.QueryRow(t.Context(), "SELECT current_user, ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
	if err := row.Scan(&role, &encrypted); err != nil || !encrypted {
		t.Fatalf("the connection is encrypted: %v, %v", encrypted, err)
	}
	admin := stores.Connect(t, "pgx", services.Postgres(t))
	schema := "tls_" + strings.ReplaceAll(postroom.NewID(), "-", "")
	execAll(t, admin, "CREATE SCHEMA "+schema+" AUTHORIZATION "+role)
	t.Cleanup(func() { execAll(t, admin, "DROP SCHEMA "+schema+" CASCADE") })
	store, err := pgxstore.Open(pool, pgxstore.Options{Schema: schema})
	if err == nil {
		err = store.Migrate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, store)
}

// roundTrip takes a message in, works on it, and finds it done.
func roundTrip(t *testing.T, store box.Store) {
	t.Helper()
	m := postroom.Message{Consumer: "orders", Source: "s", ID: postroom.NewID(), Topic: "t", Payload: []byte("x")}
	res, err := store.Put(t.Context(), nil, []box.Put{{Mode: box.Queue, Message: m}})
	if err != nil || res[0].Outcome != postroom.Accepted {
		t.Fatalf("put: %v, %v", res, err)
	}
	claimed, err := store.Claim(t.Context(), box.ClaimRequest{Consumer: "orders", Owner: "w", Lease: 1e11, Limit: 10})
	if err != nil || len(claimed) != 1 || claimed[0].ID != m.ID {
		t.Fatalf("claim: %v, %v", claimed, err)
	}
	settled, err := store.Settle(t.Context(), nil, []box.Settlement{{Lease: claimed[0].Lease, Verb: box.Ack}})
	if err != nil || !settled[0].Applied {
		t.Fatalf("ack: %v, %v", settled, err)
	}
	rec, err := store.Get(t.Context(), m.Key())
	if err != nil || rec.State != postroom.StateDone {
		t.Fatalf("get: %v, %v", rec, err)
	}
}

// Two table sets in one database are two boxes: what one knows, the other does
// not, and the suite passes on the second beside the first.
func TestTwoSetsInOneDatabase(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Harness {
			first := stores.SQLite(t, sqlstore.Options{Prefix: "orders"})
			second := beside(t, first, sqlite.Dialect, sqlstore.Options{Prefix: "payments"}, stores.SQLiteShift)
			return second.Harness()
		})
	})
	t.Run("postgres", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Harness {
			first := stores.Postgres(t, "pgx", services.Postgres(t), sqlstore.Options{Schema: "orders"})
			second := beside(t, first, postgres.Dialect, sqlstore.Options{Schema: "orders", Prefix: "payments"}, stores.PostgresShift)
			third := beside(t, second, postgres.Dialect, sqlstore.Options{Schema: "payments"}, stores.PostgresShift)
			return third.Harness()
		})
	})
}

// beside opens another set in the database of a store, and shows that the two
// know nothing of each other.
func beside(t *testing.T, first stores.Open, d *sqlstore.Dialect, opts sqlstore.Options, minus string) stores.Open {
	t.Helper()
	store, err := sqlstore.Open(first.DB, d, opts)
	second := stores.Ready(t, store, err, first.DB, opts, minus)
	separate(t, first.Store, second.Store)
	return second
}

func separate(t *testing.T, a, b box.Store) {
	t.Helper()
	m := postroom.Message{Consumer: "separate", Source: "s", ID: postroom.NewID(), Topic: "t", Payload: []byte("x")}
	for _, store := range []box.Store{a, b} {
		res, err := store.Put(t.Context(), nil, []box.Put{{Mode: box.Queue, Message: m}})
		if err != nil || res[0].Outcome != postroom.Accepted {
			t.Fatalf("each set takes the message as new: %v, %v", res, err)
		}
	}
}

// Several processes start at once: each migrates, and all find one schema.
func TestIBX114_IBX116_many_migrate_at_once(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) []*sqlstore.Store{
		"sqlite": func(t *testing.T) []*sqlstore.Store {
			return several(t, "sqlite", "file:"+filepath.Join(t.TempDir(), "box.db"), sqlite.Dialect, sqlstore.Options{})
		},
		"mariadb": func(t *testing.T) []*sqlstore.Store {
			return several(t, "mysql", services.FreshMySQL(t, services.MariaDB(t)), mysql.Dialect, sqlstore.Options{})
		},
		"sqlserver": func(t *testing.T) []*sqlstore.Store {
			return several(t, "sqlserver", services.FreshSQLServer(t, services.SQLServer(t)), sqlserver.Dialect, sqlstore.Options{Schema: "New"})
		},
		"postgres": func(t *testing.T) []*sqlstore.Store {
			return several(t, "pgx", services.FreshDatabase(t, services.Postgres(t)), postgres.Dialect, sqlstore.Options{Schema: "new"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			stores := open(t)
			if err := stores[0].Check(t.Context()); !errors.Is(err, postroom.ErrNoSchema) {
				t.Errorf("before: %v, want ErrNoSchema", err)
			}
			var wg sync.WaitGroup
			for range 3 { // each does it several times, too
				for _, s := range stores {
					wg.Go(func() {
						if err := s.Migrate(t.Context()); err != nil {
							t.Errorf("migrate: %v", err)
						}
					})
				}
			}
			wg.Wait()
			for _, s := range stores {
				if err := s.Check(t.Context()); err != nil {
					t.Errorf("after: %v", err)
				}
			}
			roundTrip(t, stores[0])
		})
	}
}

func several(t *testing.T, driver, dsn string, d *sqlstore.Dialect, opts sqlstore.Options) []*sqlstore.Store {
	t.Helper()
	list := make([]*sqlstore.Store, 6)
	for i := range list {
		var err error
		if list[i], err = sqlstore.Open(stores.Connect(t, driver, dsn), d, opts); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// The printed schema is the one that Migrate makes, and is safe to run twice.
func TestIBX115_schema_can_be_deployed_by_hand(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		db := stores.Connect(t, "sqlite", "file:"+filepath.Join(t.TempDir(), "box.db"))
		byHand(t, db, sqlite.Dialect, sqlstore.Options{Prefix: "mine"})
	})
	t.Run("postgres", func(t *testing.T) {
		db := stores.Connect(t, "postgres", services.FreshDatabase(t, services.Postgres(t)))
		byHand(t, db, postgres.Dialect, sqlstore.Options{Schema: "mine", Prefix: "box"})
	})
}

func TestIBX115_schema_can_be_deployed_by_hand_mariadb(t *testing.T) {
	db := stores.Connect(t, "mysql", services.FreshMySQL(t, services.MariaDB(t))+"?multiStatements=true")
	byHand(t, db, mysql.Dialect, sqlstore.Options{Prefix: "mine"})
}

func TestIBX115_schema_can_be_deployed_by_hand_sqlserver(t *testing.T) {
	db := stores.Connect(t, "sqlserver", services.FreshSQLServer(t, services.SQLServer(t)))
	byHand(t, db, sqlserver.Dialect, sqlstore.Options{Schema: "Mine", Prefix: "box"})
}

func byHand(t *testing.T, db *sql.DB, d *sqlstore.Dialect, opts sqlstore.Options) {
	t.Helper()
	store, err := sqlstore.Open(db, d, opts)
	if err != nil {
		t.Fatal(err)
	}
	m := postroom.Message{Consumer: "c", Source: "s", ID: "1", Topic: "t", Payload: []byte("x")}
	if _, err := store.Put(t.Context(), nil, []box.Put{{Mode: box.Queue, Message: m}}); !errors.Is(err, postroom.ErrNoSchema) {
		t.Errorf("without tables: %v, want ErrNoSchema: the store must not create them by itself", err)
	}
	text, err := store.Schema()
	if err != nil {
		t.Fatal(err)
	}
	execAll(t, db, text, text)
	if err := store.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	roundTrip(t, store)
	if err := store.Migrate(t.Context()); err != nil {
		t.Errorf("migrate what was deployed by hand: %v", err)
	}
}

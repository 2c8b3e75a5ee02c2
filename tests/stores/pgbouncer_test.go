package stores_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postroom/postroom/pgxstore"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/postgres"
	"github.com/postroom/postroom/storetest"
	"github.com/postroom/postroom/tests/services"
	"github.com/postroom/postroom/tests/stores"
)

// waysThroughPgBouncer are the drivers, each with what a program has to set.
var waysThroughPgBouncer = map[string]func(t *testing.T, dsn string) (stores.Store, error){
	"pgxstore as it comes": func(t *testing.T, dsn string) (stores.Store, error) { return openPool(t, dsn) },
	"database sql with pgx": func(t *testing.T, dsn string) (stores.Store, error) {
		return openSQL(t, "pgx", dsn+"&default_query_exec_mode=cache_describe")
	},
	"database sql with pq": func(t *testing.T, dsn string) (stores.Store, error) {
		return openSQL(t, "postgres", dsn+"&binary_parameters=yes")
	},
}

func openPool(t *testing.T, dsn string) (stores.Store, error) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), dsn+"&pool_max_conns=10")
	if err != nil {
		return nil, err
	}
	t.Cleanup(pool.Close)
	return pgxstore.Open(pool, pgxstore.Options{})
}

func openSQL(t *testing.T, driver, dsn string) (stores.Store, error) {
	t.Helper()
	return sqlstore.Open(stores.Connect(t, driver, dsn), postgres.Dialect, sqlstore.Options{})
}

// emptyBoth empties a table set and its outbox with one round trip and one commit.
var emptyBoth = func() string {
	all := ""
	for _, set := range []string{"postroom_", "postroom_outbox_"} {
		for _, table := range []string{"work", "claim", "done", "message", "lane", "audit", "total", "pause"} {
			all += "DELETE FROM " + set + table + ";"
		}
	}
	return all
}()

func TestNever13_PgBouncer_in_transaction_mode_passes_the_suite(t *testing.T) {
	for name, open := range waysThroughPgBouncer {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// One database for all cases: its sessions go on from case to case too.
			direct, through := services.FreshBouncedDatabase(t)
			admin := stores.Connect(t, "pgx", direct+"&default_query_exec_mode=simple_protocol")
			execAll(t, admin, `DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' SET synchronous_commit = off'; END $$`)
			storetest.Run(t, func(t *testing.T) storetest.Harness {
				store, err := open(t, through)
				o := stores.Ready(t, store, err, admin, sqlstore.Options{}, stores.PostgresShift)
				execAll(t, admin, emptyBoth)
				return o.Harness()
			})
		})
	}
}

// The look for a pooler does not ask for more than the store itself.
func TestPgx_a_connection_of_any_encoding_is_looked_at(t *testing.T) {
	for _, encoding := range []string{"SQL_ASCII", "LATIN1", "UTF8"} {
		store, err := openPool(t, services.FreshDatabase(t, services.Postgres(t))+"&client_encoding="+encoding)
		if err == nil {
			err = store.Migrate(t.Context())
		}
		if err != nil {
			t.Fatalf("%s: %v", encoding, err)
		}
		roundTrip(t, store)
	}
}

package stores_test

import (
	"testing"

	"github.com/postroom/postroom/pgxstore"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/storetest"
	"github.com/postroom/postroom/tests/services"
	"github.com/postroom/postroom/tests/stores"
)

func TestSQLite(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		return stores.SQLite(t, sqlstore.Options{}).Harness()
	})
}

func TestPostgres(t *testing.T) {
	for _, driver := range []string{"pgx", "postgres"} {
		t.Run(driver, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Harness {
				return stores.Postgres(t, driver, services.Postgres(t), sqlstore.Options{}).Harness()
			})
		})
	}
}

func TestMariaDB(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		return stores.MySQL(t, services.MariaDB(t), sqlstore.Options{}).Harness()
	})
}

func TestMySQL(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		return stores.MySQL(t, services.MySQL(t), sqlstore.Options{}).Harness()
	})
}

func TestSQLServer(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		return stores.SQLServer(t, services.SQLServer(t), sqlstore.Options{}).Harness()
	})
}

func TestPgx(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		return stores.Pgx(t, services.Postgres(t), pgxstore.Options{}).Harness()
	})
}

func TestPgx18(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		return stores.Pgx(t, services.Postgres18(t), pgxstore.Options{Schema: "Orders", Prefix: "inbox"}).Harness()
	})
}

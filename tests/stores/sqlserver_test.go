package stores_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/sqlserver"
	"github.com/postroom/postroom/storetest"
	"github.com/postroom/postroom/tests/services"
	"github.com/postroom/postroom/tests/stores"
)

// The suite passes whether readers see the last version of a locked row or wait
// for it; TestSQLServer runs with what the server has by itself.
func TestSQLServer_with_row_versions(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		dsn := services.FreshSQLServer(t, services.SQLServer(t))
		db := stores.Connect(t, "sqlserver", dsn)
		execAll(t, db, "ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT ON WITH ROLLBACK IMMEDIATE")
		store, err := sqlstore.Open(db, sqlserver.Dialect, sqlstore.Options{})
		return stores.Ready(t, store, err, db, sqlstore.Options{}, stores.SQLServerShift).Harness()
	})
}

// The suite passes under a user who may change rows and nothing else, with the
// grants that the store itself prints; in a set beside two others, one of them in
// the same schema.
func TestIBX126_runtime_role_has_DML_only_sqlserver(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		first := stores.SQLServer(t, services.SQLServer(t), sqlstore.Options{Prefix: "orders"})
		second := beside(t, first, sqlserver.Dialect, sqlstore.Options{Prefix: "payments"}, stores.SQLServerShift)
		opts := sqlstore.Options{Schema: "Other", Prefix: "orders"}
		third := beside(t, second, sqlserver.Dialect, opts, stores.SQLServerShift)

		role := "role_" + strings.ReplaceAll(postroom.NewID(), "-", "")[:24]
		execAll(t, first.DB, "CREATE LOGIN "+role+" WITH PASSWORD = 'Postroom_1'")
		t.Cleanup(func() { execAll(t, stores.Connect(t, "sqlserver", services.SQLServer(t)), "DROP LOGIN "+role) })
		execAll(t, first.DB, "CREATE USER "+role+" FOR LOGIN "+role)
		grants, err := third.Store.(*sqlstore.Store).Grants(role)
		if err != nil {
			t.Fatal(err)
		}
		execAll(t, first.DB, grants)
		var database string
		if err := first.DB.QueryRowContext(t.Context(), "SELECT DB_NAME()").Scan(&database); err != nil {
			t.Fatal(err)
		}
		dsn, err := url.Parse(services.SQLServer(t))
		if err != nil {
			t.Fatal(err)
		}
		query := dsn.Query()
		query.Set("database", database)
		dsn.User, dsn.RawQuery = url.UserPassword(role, "Postroom_1"), query.Encode()
		db := stores.Connect(t, "sqlserver", dsn.String())
		if _, err := db.ExecContext(t.Context(), "CREATE TABLE Other.mine (x int)"); err == nil {
			t.Fatal("the runtime user can create tables, so that this proves nothing")
		}
		store, err := sqlstore.Open(db, sqlserver.Dialect, opts)
		if err != nil {
			t.Fatal(err)
		}
		return storetest.Harness{Store: store, Advance: third.Advance}
	})
}

// A batch that is too large for one statement goes in several, in one transaction,
// and texts of any length find their way back.
func TestSQLServer_batches_of_any_size(t *testing.T) {
	store := stores.SQLServer(t, services.SQLServer(t), sqlstore.Options{}).Store
	const n = 300
	puts := make([]box.Put, n)
	for i := range puts {
		puts[i] = box.Put{Mode: box.Queue, Message: postroom.Message{
			Consumer: "orders", Source: "s", ID: fmt.Sprint(i), Topic: "t", Payload: []byte(strings.Repeat("x", i*50)),
		}}
	}
	res, err := store.Put(t.Context(), nil, puts)
	if err != nil {
		t.Fatal(err)
	}
	for i := range res {
		if res[i].Outcome != postroom.Accepted {
			t.Fatalf("message %d: %v", i, res[i].Outcome)
		}
	}
	got, err := store.Claim(t.Context(), box.ClaimRequest{Consumer: "orders", Owner: "w", Lease: time.Hour, Limit: n})
	if err != nil || len(got) != n {
		t.Fatalf("claimed %d of %d, %v", len(got), n, err)
	}
	for i, m := range got {
		if m.ID != fmt.Sprint(i) || len(m.Payload) != i*50 {
			t.Fatalf("message %s of %d bytes came as number %d", m.ID, len(m.Payload), i)
		}
	}
}

// A session that gives transactions up at the first error keeps its own setting,
// and a duplicate does not end its transaction.
func TestSQLServer_a_callers_settings_stay_his(t *testing.T) {
	open := stores.SQLServer(t, services.SQLServer(t), sqlstore.Options{})
	tx, err := open.DB.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), "SET XACT_ABORT ON; SET LOCK_TIMEOUT 12345"); err != nil {
		t.Fatal(err)
	}
	m := postroom.Message{Consumer: "c", Source: "s", ID: "1"}
	for _, want := range []postroom.Outcome{postroom.Accepted, postroom.Duplicate} {
		res, err := open.Store.Put(t.Context(), sqlstore.Tx(tx), []box.Put{{Mode: box.Once, Message: m, Handler: "h"}})
		if err != nil || res[0].Outcome != want {
			t.Fatalf("%v, %v; want %v", res, err, want)
		}
	}
	var timeout, abort int
	err = tx.QueryRowContext(t.Context(), "SELECT @@LOCK_TIMEOUT, @@OPTIONS & 16384").Scan(&timeout, &abort)
	if err != nil || timeout != 12345 || abort == 0 {
		t.Errorf("after it LOCK_TIMEOUT is %d and XACT_ABORT %d, %v", timeout, abort, err)
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
}

type numbered int32

func (n numbered) Error() string         { return fmt.Sprintf("mssql: error %d", int32(n)) }
func (n numbered) SQLErrorNumber() int32 { return int32(n) }

func TestSQLServer_errors_are_told_apart_by_number(t *testing.T) {
	for number, want := range map[numbered]sqlstore.Class{
		1205: sqlstore.Repeat, 3960: sqlstore.Repeat, 2601: sqlstore.Repeat, 2627: sqlstore.Repeat,
		1222: sqlstore.Busy, 208: sqlstore.NoTable, 207: sqlstore.NoTable, 8152: sqlstore.Refused, 2628: sqlstore.Refused,
		6005: sqlstore.Lost, 40613: sqlstore.Lost, 102: sqlstore.Other, 229: sqlstore.Other,
	} {
		if got := sqlserver.Classify(fmt.Errorf("put: %w", number)); got != want {
			t.Errorf("%d is %d, want %d", number, got, want)
		}
	}
	// A text that quotes a number is no error of the server.
	if got := sqlserver.Classify(errors.New("handler: mssql: error 1205")); got != sqlstore.Other {
		t.Errorf("a text is %d", got)
	}
	if sqlserver.Dialect.Refuse("") != nil || sqlserver.Dialect.Refuse("compatibility level 120") == nil {
		t.Error("a database without OPENJSON is refused, and no other")
	}
}

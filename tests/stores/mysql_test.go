package stores_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/mysql"
	"github.com/postroom/postroom/storetest"
	"github.com/postroom/postroom/tests/services"
	"github.com/postroom/postroom/tests/stores"
)

// odd is what a program may ask of its connections for its own sake, all at once.
const odd = "?clientFoundRows=true&parseTime=true&loc=Asia%2FTokyo&time_zone=%27-09%3A30%27&sql_mode=%27PIPES_AS_CONCAT%2CANSI_QUOTES%27" +
	"&charset=latin1&collation=latin1_swedish_ci&interpolateParams=true&maxAllowedPacket=4194304"

// openOdd opens a store whose connections are set in their own way.
func openOdd(t *testing.T, settings string, opts sqlstore.Options) stores.Open {
	t.Helper()
	db := stores.Connect(t, "mysql", services.FreshMySQL(t, services.MariaDB(t))+settings)
	store, err := sqlstore.Open(db, mysql.Dialect, opts)
	return stores.Ready(t, store, err, db, opts, stores.MySQLShift)
}

func TestMariaDB_each_setting(t *testing.T) {
	for _, setting := range []string{
		"clientFoundRows=true", "parseTime=true", "interpolateParams=true", "sql_mode=%27%27", "charset=latin1",
		"time_zone=%27%2B13%3A00%27", "tx_isolation=%27SERIALIZABLE%27", "innodb_lock_wait_timeout=1",
		"sql_mode=%27NO_BACKSLASH_ESCAPES%27&interpolateParams=true", "sql_mode=%27ANSI%27", "sql_mode=%27TRADITIONAL%27",
	} {
		t.Run(setting, func(t *testing.T) { roundTrip(t, openOdd(t, "?"+setting, sqlstore.Options{}).Store) })
	}
}

// A batch larger than what the server takes at once goes in several statements
// and one transaction.
func TestMariaDB_batches_larger_than_a_packet(t *testing.T) {
	for _, settings := range []string{"?maxAllowedPacket=1048576", "?maxAllowedPacket=1048576&interpolateParams=true"} {
		store := openOdd(t, settings, sqlstore.Options{}).Store
		const n = 300
		puts := make([]box.Put, n)
		for i := range puts {
			puts[i] = box.Put{Mode: box.Queue, Message: postroom.Message{
				Consumer: "orders", Source: "s", ID: fmt.Sprint(i), Topic: "t", Payload: []byte(strings.Repeat("x", 10_000)),
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
			if m.ID != fmt.Sprint(i) || len(m.Payload) != 10_000 {
				t.Fatalf("message %s of %d bytes came as number %d", m.ID, len(m.Payload), i)
			}
		}
	}
}

// The suite passes under a user who may change rows and nothing else, with the
// grants that the store itself prints; in a set beside two others, one of them in
// the same database; whatever a program sets on its connections.
func TestIBX126_runtime_role_has_DML_only_mariadb(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		first := openOdd(t, "?multiStatements=true", sqlstore.Options{Prefix: "orders"})
		second := beside(t, first, mysql.Dialect, sqlstore.Options{Prefix: "payments"}, stores.MySQLShift)
		unique := strings.ReplaceAll(postroom.NewID(), "-", "")
		opts := sqlstore.Options{Schema: "Other_" + unique, Prefix: "orders"}
		t.Cleanup(func() { execAll(t, first.DB, "DROP DATABASE "+opts.Schema) })
		third := beside(t, second, mysql.Dialect, opts, stores.MySQLShift)

		role := "role_" + unique[:24]
		execAll(t, first.DB, "CREATE USER "+role)
		t.Cleanup(func() { execAll(t, first.DB, "DROP USER "+role) })
		grants, err := third.Store.(*sqlstore.Store).Grants(role)
		if err != nil {
			t.Fatal(err)
		}
		execAll(t, first.DB, grants)
		config, err := driver.ParseDSN(services.MariaDB(t))
		if err != nil {
			t.Fatal(err)
		}
		config.User, config.Passwd, config.DBName = role, "", opts.Schema
		db := stores.Connect(t, "mysql", config.FormatDSN()+odd)
		if _, err := db.ExecContext(t.Context(), "CREATE TABLE mine (x int)"); err == nil {
			t.Fatal("the runtime user can create tables, so that this proves nothing")
		}
		store, err := sqlstore.Open(db, mysql.Dialect, opts)
		if err != nil {
			t.Fatal(err)
		}
		return storetest.Harness{Store: store, Advance: third.Advance}
	})
}

// A caller's transaction at the server's default isolation locks its own message
// and no gap: neither what it took in nor what it met holds up anybody else.
func TestMariaDB_a_callers_transaction_locks_no_gap(t *testing.T) {
	open := openOdd(t, "?innodb_lock_wait_timeout=1", sqlstore.Options{Wait: time.Second})
	ctx := t.Context()
	message := func(id string) postroom.Message {
		return postroom.Message{Consumer: "orders", Source: "s", ID: id, Topic: "t", Payload: []byte(id)}
	}
	receive := func(tx postroom.Tx, mode box.Mode, id string) postroom.Outcome {
		t.Helper()
		res, err := open.Store.Put(ctx, tx, []box.Put{{Mode: mode, Message: message(id), Handler: "h"}})
		if err != nil || res[0].Err != nil {
			t.Fatalf("%s: %v, %v", id, res, err)
		}
		return res[0].Outcome
	}
	for _, id := range []string{"d-live", "p-live", "x-live"} {
		receive(nil, box.Queue, id)
	}
	// Done last: the gap where their work rows would be is that of all to come.
	for _, id := range []string{"b-done", "m-done", "y-done"} {
		receive(nil, box.Once, id)
	}
	claimed, err := open.Store.Claim(ctx, box.ClaimRequest{Consumer: "orders", Owner: "w", Lease: time.Hour, Limit: 10})
	if err != nil || len(claimed) != 3 {
		t.Fatal(claimed, err)
	}
	tx, err := open.DB.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	var level string
	if err := tx.QueryRowContext(ctx, "SELECT @@tx_isolation").Scan(&level); err != nil || level != "REPEATABLE-READ" {
		t.Fatalf("the default isolation is %s, %v; this proves nothing", level, err)
	}
	caller := sqlstore.Tx(tx)
	for _, id := range []string{"b-done", "m-done", "y-done"} {
		if got := receive(caller, box.Once, id); got != postroom.Duplicate {
			t.Errorf("%s: %v", id, got)
		}
	}
	for _, id := range []string{"d-live", "p-live", "x-live"} {
		if got := receive(caller, box.Queue, id); got != postroom.Duplicate {
			t.Errorf("%s: %v", id, got)
		}
	}
	receive(caller, box.Queue, "n-new")
	receive(caller, box.Once, "n-once")
	// Everybody else goes on: before, between and behind all of these.
	for _, id := range []string{"a", "c", "l", "n", "n-n", "o", "q", "z"} {
		if got := receive(nil, box.Queue, id); got != postroom.Accepted {
			t.Errorf("%s: %v", id, got)
		}
	}
	for _, m := range claimed {
		settled, err := open.Store.Settle(ctx, nil, []box.Settlement{{Lease: m.Lease, Verb: box.Ack}})
		if err != nil || !settled[0].Applied {
			t.Errorf("ack %s: %+v, %v", m.ID, settled, err)
		}
	}
	more, err := open.Store.Claim(ctx, box.ClaimRequest{Consumer: "orders", Owner: "w", Lease: time.Hour, Limit: 100})
	if err != nil || len(more) != 8 {
		t.Errorf("claimed %d of the 8 others, %v", len(more), err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// A lock that is not obtained in time undoes one statement, and a deadlock the
// whole transaction: both are the caller's to roll back and repeat.
func TestNever05_lock_timeout_and_deadlock_ask_the_caller_to_repeat(t *testing.T) {
	open := openOdd(t, "?innodb_lock_wait_timeout=1", sqlstore.Options{Wait: time.Second})
	ctx := t.Context()
	put := func(tx postroom.Tx, id string) error {
		_, err := open.Store.Put(ctx, tx, []box.Put{{Mode: box.Once, Message: postroom.Message{Consumer: "orders", Source: "s", ID: id}}})
		return err
	}
	first, err := open.DB.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := open.DB.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = first.Rollback(), second.Rollback() }()
	if err := errors.Join(put(sqlstore.Tx(first), "a"), put(sqlstore.Tx(second), "b")); err != nil {
		t.Fatal(err)
	}
	err = put(sqlstore.Tx(second), "a")
	if !errors.Is(err, postroom.ErrRetry) || !errors.Is(err, postroom.ErrInProgress) {
		t.Errorf("after the bound: %v; want that it is in progress, and to repeat", err)
	}
	crossed := make(chan error, 1)
	go func() { crossed <- put(sqlstore.Tx(first), "b") }()
	errs := errors.Join(put(sqlstore.Tx(second), "a"), <-crossed)
	if !errors.Is(errs, postroom.ErrRetry) {
		t.Errorf("crossed: %v; want that one of them is to repeat", errs)
	}
}

// A server that would break a promise is refused before anything is written.
func TestTiDB_is_refused(t *testing.T) {
	for version, why := range map[string]string{
		"8.0.11-TiDB-v7.5.1": "TiDB", "5.7.44-log": "SKIP LOCKED", "10.5.23-MariaDB": "SKIP LOCKED",
	} {
		if err := mysql.Dialect.Refuse(version); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", version, err)
		}
	}
	for _, version := range []string{"8.0.36", "8.4.0-commercial", "9.1.0", "10.6.18-MariaDB", "10.11.14-MariaDB-0+deb12u2", "11.4.2-MariaDB"} {
		if err := mysql.Dialect.Refuse(version); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
	refusing := *mysql.Dialect
	refusing.Refuse = func(string) error { return errors.New("refused") }
	db := stores.Connect(t, "mysql", services.FreshMySQL(t, services.MariaDB(t)))
	store, err := sqlstore.Open(db, &refusing, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"migrate": store.Migrate(context.Background()), "check": store.Check(context.Background())} {
		if err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// onEachDatabase runs a test on a fresh SQLite file and in a fresh database of
// each server that there is.
func onEachDatabase(t *testing.T, test func(t *testing.T, db string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, "sqlite:"+filepath.Join(t.TempDir(), "box #1 %41.db")) })
	t.Run("postgres", func(t *testing.T) { test(t, freshPostgres(t)) })
	t.Run("mariadb", func(t *testing.T) { test(t, freshMariaDB(t)) })
	t.Run("mysql", func(t *testing.T) { test(t, freshOnMySQL(t, service(t, "MYSQL"))) })
}

// service gives the DSN of a superuser on a server that scripts/services started.
func service(t *testing.T, name string) string {
	t.Helper()
	variable := "POSTROOM_TEST_" + name + "_DSN"
	if dsn := os.Getenv(variable); dsn != "" {
		return dsn
	}
	if reason := os.Getenv("POSTROOM_TEST_" + name + "_ABSENT"); reason != "" {
		t.Skipf("no %s: %s", name, reason)
	}
	if os.Getenv("POSTROOM_REQUIRE_SERVICES") != "" {
		t.Fatalf("%s is not set, and POSTROOM_REQUIRE_SERVICES forbids to skip", variable)
	}
	t.Skipf("%s is not set: use make test, or scripts/services run -- go test …", variable)
	return ""
}

func freshPostgres(t *testing.T) string {
	t.Helper()
	return freshOnPostgres(t, service(t, "POSTGRES"))
}

// freshOnPostgres creates a database that is dropped after the test.
func freshOnPostgres(t *testing.T, dsn string) string {
	t.Helper()
	fresh, err := url.Parse(dsn)
	if err != nil {
		t.Fatalf("the DSN is not a URL: %v", err)
	}
	exec := func(ctx context.Context, statement string) {
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			t.Fatalf("connect for %q: %v", statement, err)
		}
		defer func() { _ = conn.Close(ctx) }()
		if _, err := conn.Exec(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	name := "test_" + strings.ToLower(rand.Text())
	exec(t.Context(), "CREATE DATABASE "+name)
	t.Cleanup(func() { exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)") })
	fresh.Path = "/" + name
	return fresh.String()
}

func freshMariaDB(t *testing.T) string {
	t.Helper()
	return freshOnMySQL(t, service(t, "MARIADB"))
}

// freshOnMySQL creates a database that is dropped after the test.
func freshOnMySQL(t *testing.T, dsn string) string {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatalf("the DSN can't be read: %v", err)
	}
	exec := func(ctx context.Context, statement string) {
		db, err := sql.Open("mysql", config.FormatDSN())
		if err != nil {
			t.Fatalf("connect for %q: %v", statement, err)
		}
		defer func() { _ = db.Close() }()
		if _, err := db.ExecContext(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	name := "test_" + strings.ToLower(rand.Text())
	exec(t.Context(), "CREATE DATABASE "+name)
	t.Cleanup(func() { exec(context.Background(), "DROP DATABASE "+name) })
	u := url.URL{Scheme: "mariadb", User: url.UserPassword(config.User, config.Passwd), Host: config.Addr, Path: "/" + name}
	return u.String()
}

// inStore opens a database as the program does.
func inStore(t *testing.T, db string) *opened {
	t.Helper()
	d := database{URL: db, tableSet: tableSet{Prefix: "postroom"}}
	store, err := d.open(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.close)
	return store
}

// finish takes in n messages that are done at once.
func finish(t *testing.T, store *opened, consumer string, n int) {
	t.Helper()
	puts := make([]box.Put, n)
	for i := range puts {
		puts[i] = box.Put{Mode: box.Once, Message: postroom.Message{
			Consumer: consumer, Source: "test", ID: fmt.Sprint(i), Topic: "order.paid", Payload: []byte("{}"),
		}}
	}
	if _, err := store.Put(t.Context(), nil, puts); err != nil {
		t.Fatal(err)
	}
	if err := store.Count(t.Context(), []box.Count{{Consumer: consumer, Topic: "order.paid", Name: box.CountAccepted, N: int64(n)}}); err != nil {
		t.Fatal(err)
	}
}

// age moves the end of all messages that are done into the past.
func age(t *testing.T, db *sql.DB, d time.Duration) {
	t.Helper()
	minus := fmt.Sprintf("done_at - %d", d.Microseconds())
	if strings.Contains(fmt.Sprintf("%T", db.Driver()), "stdlib") {
		minus += " * interval '1 microsecond'"
	}
	if _, err := db.ExecContext(t.Context(), "UPDATE postroom_done SET done_at = "+minus); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, db *sql.DB, table, where string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM postroom_"+table+" WHERE "+where).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// dropUser runs after the test, whose context and pools have ended by then.
func dropUser(t *testing.T, db, user string) {
	config, err := mysqlConfig(db)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := sql.Open("mysql", config.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pool.Close() }()
	if _, err := pool.ExecContext(context.Background(), "DROP USER "+user); err != nil {
		t.Error(err)
	}
}

// dropRoles takes away what the roles have in a database, and the roles.
func dropRoles(t *testing.T, db string, roles ...string) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, db)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, role := range roles {
		if _, err := conn.Exec(ctx, "DROP OWNED BY "+role+"; DROP ROLE "+role); err != nil {
			t.Error(err)
		}
	}
}

package services

import (
	"context"
	"crypto/rand"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// MariaDB returns the DSN of a MariaDB superuser, without a database, in the
// form of github.com/go-sql-driver/mysql.
func MariaDB(t testing.TB) string { t.Helper(); return find(t, "MARIADB") }

// MySQL returns the same for MySQL. That server cannot be had everywhere: the
// test may be skipped under make test too.
func MySQL(t testing.TB) string { t.Helper(); return find(t, "MYSQL") }

// FreshMySQL creates an empty database on the MariaDB or MySQL server at dsn and
// returns the DSN of the new one. It is dropped when the test ends.
func FreshMySQL(t testing.TB, dsn string) string {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatalf("the DSN can't be read: %v", err)
	}
	name := "test_" + strings.ToLower(rand.Text())
	onMySQL(t, t.Context(), dsn, "CREATE DATABASE "+name)
	t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		onMySQL(t, ctx, dsn, "DROP DATABASE "+name)
	})
	config.DBName = name
	return config.FormatDSN()
}

func onMySQL(t testing.TB, ctx context.Context, dsn, statement string) {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatalf("connect for %q: %v", statement, err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(ctx, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

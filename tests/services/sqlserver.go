package services

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	_ "github.com/microsoft/go-mssqldb" // driver "sqlserver"
)

// SQLServer returns the URL of a SQL Server login that may create databases and
// logins, in the form of github.com/microsoft/go-mssqldb. That server cannot be
// had everywhere: the test may be skipped under make test too.
func SQLServer(t testing.TB) string {
	t.Helper()
	dsn := find(t, "SQLSERVER")
	if Babelfish() {
		skipOnBabelfish(t)
	}
	return dsn
}

// FreshSQLServer creates an empty database on the server at dsn and returns the
// URL of the new one. It is dropped when the test ends.
func FreshSQLServer(t testing.TB, dsn string) string {
	t.Helper()
	fresh, err := url.Parse(dsn)
	if err != nil {
		t.Fatalf("the DSN is not a URL: %v", err)
	}
	name := "test_" + strings.ToLower(rand.Text())
	onSQLServer(t, t.Context(), dsn, "CREATE DATABASE "+name)
	t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if !Babelfish() {
			onSQLServer(t, ctx, dsn, "ALTER DATABASE "+name+" SET SINGLE_USER WITH ROLLBACK IMMEDIATE")
		}
		onSQLServer(t, ctx, dsn, "DROP DATABASE "+name)
	})
	query := fresh.Query()
	query.Set("database", name)
	fresh.RawQuery = query.Encode()
	return fresh.String()
}

func onSQLServer(t testing.TB, ctx context.Context, dsn, statement string) {
	t.Helper()
	db, err := sql.Open("sqlserver", dsn)
	if err != nil {
		t.Fatalf("connect for %q: %v", statement, err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(ctx, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// Babelfish reports whether the server is Babelfish, which speaks the protocol
// but is only a smoke test: see babelfish.go.
func Babelfish() bool { return os.Getenv("POSTROOM_TEST_SQLSERVER_FLAVOR") == "babelfish" }

package services

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// FreshDatabase creates an empty database on the PostgreSQL server at dsn, a
// URL, and returns the URL of the new one, for the same role. The database is
// dropped when the test ends, whoever is still connected.
func FreshDatabase(t testing.TB, dsn string) string {
	t.Helper()
	fresh, err := url.Parse(dsn)
	if err != nil {
		t.Fatalf("the DSN is not a URL: %v", err)
	}
	name := "test_" + strings.ToLower(rand.Text())
	exec(t, t.Context(), dsn, "CREATE DATABASE "+name)
	t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		exec(t, ctx, dsn, "DROP DATABASE "+name+" WITH (FORCE)")
	})
	fresh.Path = "/" + name
	return fresh.String()
}

// FreshBouncedDatabase creates an empty database on the server of [Postgres] and
// returns its URL there, and the one through [PgBouncer].
func FreshBouncedDatabase(t testing.TB) (direct, bounced string) {
	t.Helper()
	through, err := url.Parse(PgBouncer(t))
	if err != nil {
		t.Fatalf("the DSN is not a URL: %v", err)
	}
	direct = FreshDatabase(t, Postgres(t))
	fresh, err := url.Parse(direct)
	if err != nil {
		t.Fatalf("the DSN is not a URL: %v", err)
	}
	through.Path = fresh.Path
	return direct, through.String()
}

func exec(t testing.TB, ctx context.Context, dsn, statement string) {
	t.Helper()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatalf("connect for %q: %v", statement, err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

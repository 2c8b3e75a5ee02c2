package services_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/postroom/postroom/tests/services"
)

func TestAMissingServiceSkipsUnlessServicesAreRequired(t *testing.T) {
	ask := func(t testing.TB) { services.Postgres18(t) }
	for _, c := range []struct {
		name, dsn, absent, require, want, says string
	}{
		{name: "found", dsn: "postgres://x", require: "1", want: "returned"},
		{name: "plain go test", want: "skipped", says: "make test"},
		{name: "required", require: "1", want: "failed", says: "POSTROOM_TEST_POSTGRES18_DSN"},
		{name: "cannot be had", absent: "npm is not installed", require: "1", want: "skipped", says: "npm is not installed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("POSTROOM_TEST_POSTGRES18_DSN", c.dsn)
			t.Setenv("POSTROOM_TEST_POSTGRES18_ABSENT", c.absent)
			t.Setenv("POSTROOM_REQUIRE_SERVICES", c.require)
			got, message := outcome(t, ask)
			if got != c.want || !strings.Contains(message, c.says) {
				t.Errorf("the test %s, saying %q; want it %s, saying %q", got, message, c.want, c.says)
			}
		})
	}
}

func TestAFreshDatabaseIsEmptyAndGoneAfterTheTest(t *testing.T) {
	for name, server := range map[string]func(testing.TB) string{
		"postgres": services.Postgres, "postgres18": services.Postgres18, "tls": services.PostgresTLS,
	} {
		t.Run(name, func(t *testing.T) {
			dsn := server(t)
			var database string
			t.Run("use", func(t *testing.T) {
				conn, err := pgx.Connect(t.Context(), services.FreshDatabase(t, dsn))
				if err != nil {
					t.Fatal(err)
				}
				// Left open: dropping must not wait for whoever is connected.
				var tables int
				err = conn.QueryRow(t.Context(), `SELECT current_database(), (SELECT count(*) FROM pg_tables WHERE schemaname = 'public')`).Scan(&database, &tables)
				if err != nil || tables != 0 {
					t.Fatalf("%d tables, %v", tables, err)
				}
			})
			conn, err := pgx.Connect(t.Context(), dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close(t.Context()) }()
			var left bool
			if err := conn.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, database).Scan(&left); err != nil || left {
				t.Errorf("database %q is still there: %v, %v", database, left, err)
			}
		})
	}
}

func TestTheTLSRoleIsRefusedWithoutTLS(t *testing.T) {
	dsn := services.PostgresTLS(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close(t.Context())
	plain := strings.Replace(dsn, "sslmode=verify-full", "sslmode=disable", 1)
	if conn, err := pgx.Connect(t.Context(), plain); err == nil {
		_ = conn.Close(t.Context())
		t.Errorf("connected to %s", plain)
	}
}

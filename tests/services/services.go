// Package services tells tests where the servers are that they need, as
// scripts/services left word in the environment.
//
// A test that asks for a server which is not there is skipped, or fails when
// POSTROOM_REQUIRE_SERVICES is set, as it is under make test.
package services

import (
	"os"
	"strings"
	"testing"
)

// Postgres returns the DSN of a PostgreSQL superuser.
func Postgres(t testing.TB) string { t.Helper(); return find(t, "POSTGRES") }

// PostgresTLS returns the DSN of a role on the server of [Postgres] that may
// create databases and is refused on a connection without TLS.
func PostgresTLS(t testing.TB) string { t.Helper(); return find(t, "POSTGRES_TLS") }

// Postgres18 returns the DSN of a superuser on PostgreSQL 18. That server
// cannot be had everywhere: the test may be skipped under make test too.
func Postgres18(t testing.TB) string { t.Helper(); return find(t, "POSTGRES18") }

// PgBouncer returns the DSN of a PgBouncer in transaction mode, in front of the
// server of [Postgres] with all its databases.
func PgBouncer(t testing.TB) string { t.Helper(); return find(t, "PGBOUNCER") }

func find(t testing.TB, name string) string {
	t.Helper()
	variable := "POSTROOM_TEST_" + name + "_DSN"
	if dsn := os.Getenv(variable); dsn != "" {
		return dsn
	}
	if reason := os.Getenv("POSTROOM_TEST_" + name + "_ABSENT"); reason != "" {
		t.Skipf("no %s: %s", strings.ToLower(name), reason)
	}
	if os.Getenv("POSTROOM_REQUIRE_SERVICES") != "" {
		t.Fatalf("%s is not set, and POSTROOM_REQUIRE_SERVICES forbids to skip", variable)
	}
	t.Skipf("%s is not set: use make test, or scripts/services run -- go test …", variable)
	return ""
}

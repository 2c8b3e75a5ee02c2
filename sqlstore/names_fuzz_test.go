package sqlstore_test

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/postgres"
	"github.com/postroom/postroom/sqlstore/sqlite"
)

const (
	lower  = "abcdefghijklmnopqrstuvwxyz_"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
)

// identifier reports whether s can stand in SQL as it is.
func identifier(s, first, rest string, most int) bool {
	return s != "" && len(s) <= most && strings.Contains(first, s[:1]) && strings.Trim(s, rest) == ""
}

// FuzzNEVER20_ProperNamesOnly: what could mean anything but a name in SQL is
// refused before it gets there.
func FuzzNEVER20_ProperNamesOnly(f *testing.F) {
	f.Add("", "")
	f.Add("Orders", "inbox")
	f.Add(`x"; drop table y; --`, "p")
	f.Add("public", "x; drop table y")
	f.Add("public", "p\n")
	f.Add("{{work}}", "{{prefix}}")
	f.Add(strings.Repeat("s", 64), strings.Repeat("p", 41))
	f.Fuzz(func(t *testing.T, schema, prefix string) {
		opts := sqlstore.Options{Schema: schema, Prefix: prefix}
		proper := (prefix == "" || identifier(prefix, lower, lower+digits, 40)) &&
			(schema == "" || identifier(schema, lower+upper, lower+upper+digits, 63))
		if _, err := sqlstore.New(nil, postgres.Dialect, opts); (err == nil) != proper {
			t.Errorf("schema %q, prefix %q on PostgreSQL: %v", schema, prefix, err)
		}
		if _, err := sqlstore.New(nil, sqlite.Dialect, opts); (err == nil) != (proper && schema == "") {
			t.Errorf("schema %q, prefix %q on SQLite: %v", schema, prefix, err)
		}
	})
}

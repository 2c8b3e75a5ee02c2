package stores_test

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/tests/services"
	"github.com/postroom/postroom/tests/stores"
)

// TestIBX122_125_indexes: a claim, what falls due, what expires and a lookup by
// key each have an index of their own, over the rows that they are for.
func TestIBX122_125_indexes(t *testing.T) {
	for name, c := range map[string]struct {
		open   func(t *testing.T) stores.Open
		expiry string
		query  string
	}{
		"sqlite": {
			func(t *testing.T) stores.Open { return stores.SQLite(t, sqlstore.Options{}) },
			"postroom_work_lease (consumer, lease_until) WHERE",
			`SELECT m.name || ' (' || group_concat(i.name, ', ') || ') ' || coalesce(substr(m.sql, instr(m.sql, 'WHERE')), '')
			 FROM sqlite_master m, pragma_index_info(m.name) i WHERE m.type = 'index' GROUP BY m.name`,
		},
		"postgres": {
			func(t *testing.T) stores.Open {
				return stores.Postgres(t, "pgx", services.Postgres(t), sqlstore.Options{})
			},
			"postroom_claim_pkey (consumer, until, low)",
			`SELECT indexname || ' ' || substr(indexdef, position('(' in indexdef)) FROM pg_indexes WHERE schemaname = 'public'`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			rows, err := c.open(t).DB.QueryContext(t.Context(), c.query)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = rows.Close() }()
			var all strings.Builder
			for rows.Next() {
				var index string
				if err := rows.Scan(&index); err != nil {
					t.Fatal(err)
				}
				all.WriteString(index + "\n")
			}
			if err := rows.Err(); err != nil {
				t.Fatal(err)
			}
			for purpose, columns := range map[string]string{
				"lookup by key": "(consumer, source, id)",
				"claim":         "postroom_work_ready (consumer, ready_position) WHERE",
				"falling due":   "postroom_work_next (consumer, next) WHERE",
				"expiry":        c.expiry,
			} {
				if !strings.Contains(all.String(), columns) {
					t.Errorf("no index %q for %s among\n%s", columns, purpose, all.String())
				}
			}
		})
	}
}

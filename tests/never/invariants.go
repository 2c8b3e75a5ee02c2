// Package never holds what must never happen, each as a named test against the
// real databases, with the orders of events forced by package park.
package never

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"

	mssql "github.com/microsoft/go-mssqldb"
)

// An invariant is what would be wrong, and a query that finds it.
type invariant struct{ fault, query string }

// invariants are queries over a table set at rest that give what is wrong with
// it: a row for each fault. P stands for the prefix.
var invariants = []invariant{
	{"a message is both live and done, or neither", `
		SELECT m.seq FROM P_message m LEFT JOIN P_work w ON w.seq = m.seq LEFT JOIN P_done d ON d.seq = m.seq
		WHERE (w.seq IS NULL AND d.seq IS NULL) OR (w.seq IS NOT NULL AND d.seq IS NOT NULL)`},
	{"a work row has no message", `
		SELECT w.seq FROM P_work w LEFT JOIN P_message m ON m.seq = w.seq WHERE m.seq IS NULL OR m.consumer <> w.consumer`},
	{"a done row has no message", `
		SELECT d.seq FROM P_done d LEFT JOIN P_message m ON m.seq = d.seq WHERE m.seq IS NULL OR m.consumer <> d.consumer`},
	{"a lane names a head that is not one", `
		SELECT l.head FROM P_lane l LEFT JOIN P_work w ON w.seq = l.head
		WHERE l.head IS NOT NULL
		  AND (w.seq IS NULL OR w.consumer <> l.consumer OR w.grp <> l.grp OR w.stage NOT IN (3, 7, 8, 9, 10, 11))`},
	{"a message runs or could run beside the head of its group", `
		SELECT w.seq FROM P_work w LEFT JOIN P_lane l ON l.head = w.seq
		WHERE w.grp <> '' AND (w.stage IN (3, 7, 8, 11) OR (w.stage = 9 AND w.guard = 0)) AND l.head IS NULL`},
	{"a message is queued in a group without a lane", `
		SELECT w.seq FROM P_work w LEFT JOIN P_lane l ON l.consumer = w.consumer AND l.grp = w.grp
		WHERE w.stage = 6 AND l.grp IS NULL`},
	{"a message is queued without a group", `
		SELECT w.seq FROM P_work w WHERE w.stage IN (4, 5, 6) AND w.grp = ''`},
	{"a lease lacks its owner or its end, or is left on a message that is not leased", `
		SELECT w.seq FROM P_work w
		WHERE (w.stage = 9 AND (w.owner = '' OR w.lease_until IS NULL)) OR (w.stage NOT IN (9, 10) AND (w.owner <> '' OR w.lease_until IS NOT NULL))`},
	{"a message waits for a time that it has not", `
		SELECT w.seq FROM P_work w WHERE w.stage IN (3, 4) AND w.next IS NULL`},
	{"the revision of a live message is not that of its content", `
		SELECT w.seq FROM P_work w JOIN P_message m ON m.seq = w.seq WHERE w.revision <> m.revision`},
}

// claimInvariants are those where leases are found by the claims that made them.
var claimInvariants = []invariant{
	{"a message is at a place that is not its stage", `
		SELECT w.seq FROM P_work w WHERE w.place <> w.stage AND NOT (w.stage = 9 AND w.place IN (7, 8))`},
	{"no claim leads to a lease in time", `
		SELECT w.seq FROM P_work w
		WHERE w.stage = 9 AND w.place <> 9 AND NOT EXISTS (
			SELECT 1 FROM P_claim c
			WHERE c.consumer = w.consumer AND w.ready_position BETWEEN c.low AND c.high AND c.until <= w.lease_until)`},
}

// CheckInvariants fails the test for each way in which the tables of a set
// contradict each other. Nobody may be writing meanwhile.
func CheckInvariants(t testing.TB, db *sql.DB, prefix string) {
	t.Helper()
	all := invariants
	if _, err := db.ExecContext(context.Background(), "SELECT 1 FROM "+prefix+"_claim WHERE 1 = 0"); err == nil {
		all = slices.Concat(all, claimInvariants)
	}
	for _, inv := range all {
		query := strings.ReplaceAll(inv.query, "P_", prefix+"_")
		if _, ok := db.Driver().(*mssql.Driver); ok {
			query = strings.ReplaceAll(query, "''", "0x") // names are bytes there
		}
		rows, err := db.QueryContext(context.Background(), query)
		if err != nil {
			t.Fatalf("%s: %v", inv.fault, err)
		}
		for rows.Next() {
			var seq int64
			if err := rows.Scan(&seq); err != nil {
				t.Fatalf("%s: %v", inv.fault, err)
			}
			t.Errorf("%s: message %d", inv.fault, seq)
		}
		if err := rows.Err(); err != nil {
			t.Fatalf("%s: %v", inv.fault, err)
		}
		_ = rows.Close()
	}
}

// Package doctor looks at a database for what endangers the promises of a box
// kept in it, and says how to mend it. It changes nothing.
//
// A check is a name, the reason for it, and a function that looks. Those that
// hold for every database are in common.go; each database has a file with its
// own, and a row in databases.
package doctor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/postroom/postroom/sqlstore"
)

// A Severity says how bad a finding is.
type Severity string

// The severities, from harmless to bad.
const (
	OK Severity = "ok"
	// Skip: it could not be looked at, because of what the role may see or what
	// else was found.
	Skip Severity = "skip"
	Warn Severity = "warn"
	Fail Severity = "fail"
)

// A Finding is what one check saw in one place.
type Finding struct {
	// Check names the check, as in "durability.fsync". Names are stable.
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	// Seen is what is so.
	Seen string `json:"seen"`
	// Why says what comes of it. Empty when nothing is wrong.
	Why string `json:"why"`
	// Mend is what to run or to do, where something is to be done.
	Mend string `json:"mend"`
}

// A Patient is a database with the tables of a box.
type Patient struct {
	DB      *sql.DB
	Store   *sqlstore.Store
	Dialect *sqlstore.Dialect
	// Schema and Prefix are those of the store.
	Schema, Prefix string
	// File is the path of a SQLite database.
	File string
	// Unprepared: the URL tells the program to prepare no statements.
	Unprepared bool
	// Connections is how many connections the programs need together.
	Connections int
	// Overdue is how long a message may wait.
	Overdue time.Duration
	// LongTransaction is how long a transaction may be open.
	LongTransaction time.Duration
	// Now is this machine's clock.
	Now func() time.Time

	database *database
	// tables: they are there, so that checks of what is in them can look.
	tables bool
	// variables are those of a MySQL or MariaDB server, once read.
	variables map[string]string
}

// A database is what is to be known of one kind of database.
type database struct {
	// clock is a query for the microseconds since 1970.
	clock string
	// relations gives the names of tables, views and sequences beside those of
	// the patient.
	relations func(ctx context.Context, p *Patient) (map[string]bool, error)
	// indexes gives the indexes of such tables.
	indexes func(ctx context.Context, p *Patient) ([]index, error)
	// refused: an error tells that the role may not look.
	refused func(err error) bool
	checks  []check
}

// databases has a row for each dialect. One that has none gets the checks which
// need no knowledge of the database.
var databases = map[string]*database{
	"postgres":  &postgres,
	"mysql":     &mysql,
	"sqlserver": &sqlserver,
	"sqlite":    &sqlite,
}

// A check looks at one thing.
type check struct {
	name string
	// why says what comes of it if something is wrong.
	why string
	// tables: it reads the tables, and is left out when they are not there.
	tables bool
	look   func(ctx context.Context, p *Patient) ([]result, error)
}

// A result is what a check saw. No result means that there is nothing of the
// kind here, as without a binary log nobody needs to sync it.
type result struct {
	severity   Severity
	seen, mend string
}

func fine(format string, args ...any) []result {
	return []result{{severity: OK, seen: fmt.Sprintf(format, args...)}}
}

func skipped(format string, args ...any) []result {
	return []result{{severity: Skip, seen: fmt.Sprintf(format, args...)}}
}

// checkTime bounds one check.
const checkTime = 15 * time.Second

// Examine runs all checks. A check that fails itself is a finding too.
func Examine(ctx context.Context, p *Patient) []Finding {
	p.database = databases[p.Dialect.Name]
	checks := common
	if p.database == nil {
		p.database = &database{}
		checks = append(checks[:len(checks):len(checks)], unknown)
	}
	if p.database.refused == nil {
		p.database.refused = func(error) bool { return false }
	}
	var findings []Finding
	for _, c := range append(checks[:len(checks):len(checks)], p.database.checks...) {
		for _, r := range p.run(ctx, c) {
			f := Finding{Check: c.name, Severity: r.severity, Seen: r.seen, Mend: r.mend}
			if r.severity == Warn || r.severity == Fail {
				f.Why = c.why
			}
			findings = append(findings, f)
		}
	}
	return findings
}

func (p *Patient) run(ctx context.Context, c check) []result {
	if c.tables && !p.tables {
		return skipped("not looked at: the tables are not there")
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	results, err := c.look(ctx, p)
	switch {
	case err == nil:
		return results
	case p.database.refused(err):
		return append(results, skipped("not looked at, the role may not: %v", err)...)
	case errors.Is(err, context.DeadlineExceeded):
		return append(results, result{Fail, fmt.Sprintf("no answer within %s", checkTime), "look for locks on the catalog or an overloaded server, and run this again"})
	default:
		return append(results, result{Fail, fmt.Sprintf("could not look: %v", err), "run this again; if it stays so, the error says what is wrong"})
	}
}

// unknown says that a database has no checks of its own.
var unknown = check{
	name: "server.version",
	look: func(_ context.Context, p *Patient) ([]result, error) {
		return skipped("there are no checks for the settings of %s", p.Dialect.Name), nil
	},
}

package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/postroom/postroom/cmd/postroom/doctor"
	"github.com/postroom/postroom/sqlstore/postgres"
	"github.com/postroom/postroom/sqlstore/sqlite"
)

type doctorCommand struct {
	database    `embed:""`
	Strict      bool          `help:"Exit with 1 also when there are only warnings."`
	Connections int           `default:"13" placeholder:"N" help:"How many connections the programs open together at most. Default: ${default}, which is one worker with its defaults."`
	Overdue     time.Duration `default:"15m" placeholder:"TIME" help:"How long a message may wait before it is told of. Default: ${default}."`
	JSON        bool          `name:"json" help:"Print JSON."`
}

// Help gives the examples and says what is looked at.
func (*doctorCommand) Help() string {
	return `Examples:

  postroom doctor --db sqlite:box.db
  POSTROOM_DB=postgres://app:secret@db/shop postroom doctor --strict
  postroom doctor --json | jq '.findings[] | select(.severity == "fail")'

Give it the URL that the program uses: grants and settings are those of its role.
It looks at settings that endanger durability, the state of the tables, grants
wider than needed, the clocks, and messages that are stuck, and changes nothing.

Each finding is ok, warn or fail; skip stands for what this role may not see.
A warning or failure comes with the reason and with what to run or to do.
Exit status: 0 nothing failed; 1 something did, or with --strict there is a
warning; 2 wrong usage.`
}

// doctorResult is the output of doctor as JSON.
type doctorResult struct {
	Database string `json:"database"`
	// Healthy: the exit status is 0.
	Healthy  bool                    `json:"healthy"`
	Counts   map[doctor.Severity]int `json:"counts"`
	Findings []doctor.Finding        `json:"findings"`
}

// longTransaction is how long a transaction may be open before it is told of.
const longTransaction = 5 * time.Minute

// Run examines the database.
func (c *doctorCommand) Run(ctx context.Context, term *terminal) error {
	if c.Connections < 1 || c.Overdue <= 0 {
		return usagef("--connections and --overdue must be positive")
	}
	p, store, err := c.patient(ctx)
	if err != nil {
		return err
	}
	defer store.close()
	res := doctorResult{
		Database: redact(c.URL), Findings: doctor.Examine(ctx, p),
		Counts: map[doctor.Severity]int{doctor.OK: 0, doctor.Skip: 0, doctor.Warn: 0, doctor.Fail: 0},
	}
	if ctx.Err() != nil {
		return fmt.Errorf("stopped before the end")
	}
	for i, f := range res.Findings {
		res.Counts[f.Severity]++
		res.Findings[i].Seen, res.Findings[i].Mend = redact(f.Seen), redact(f.Mend)
	}
	res.Healthy = res.Counts[doctor.Fail] == 0 && (!c.Strict || res.Counts[doctor.Warn] == 0)
	if c.JSON {
		err = printJSON(term.out, res)
	} else {
		err = term.print(res.text())
	}
	if err == nil && !res.Healthy {
		err = errFound
	}
	return err
}

func (c *doctorCommand) patient(ctx context.Context) (*doctor.Patient, *opened, error) {
	kind, err := kindOf(c.URL)
	if err != nil {
		return nil, nil, err
	}
	d := c.database
	p := &doctor.Patient{
		Schema: c.Schema, Prefix: c.Prefix, Connections: c.Connections, Overdue: c.Overdue,
		LongTransaction: longTransaction, Now: time.Now,
	}
	switch kind.dialect {
	case postgres.Dialect:
		d.URL, p.Unprepared = unprepared(d.URL)
	case sqlite.Dialect:
		if _, p.File, err = sqliteDSN(d.URL, false); err != nil {
			return nil, nil, err
		}
	}
	store, err := d.open(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	p.DB, p.Store, p.Dialect = store.db, store.Store, store.dialect
	return p, store, nil
}

// unprepared lets the doctor itself do without prepared statements, which a
// pooler may lose, and tells whether the URL does so already.
func unprepared(raw string) (string, bool) {
	u, err := url.Parse(raw)
	if err != nil {
		return raw, false // opening it tells what is wrong
	}
	q := u.Query()
	mode := q.Get("default_query_exec_mode")
	q.Set("default_query_exec_mode", "exec")
	u.RawQuery = q.Encode()
	return u.String(), mode != "" && mode != "cache_statement"
}

// text is the result for people: what is wrong first.
func (r *doctorResult) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", r.Database)
	for _, severity := range []doctor.Severity{doctor.Fail, doctor.Warn, doctor.Skip, doctor.OK} {
		for _, f := range r.Findings {
			if f.Severity != severity {
				continue
			}
			fmt.Fprintf(&b, "%-4s  %s: %s\n", f.Severity, f.Check, f.Seen)
			if f.Why != "" {
				fmt.Fprintf(&b, "      why:  %s\n", f.Why)
			}
			if f.Mend != "" {
				fmt.Fprintf(&b, "      mend: %s\n", f.Mend)
			}
		}
	}
	fmt.Fprintf(&b, "\n%d failed, %d warnings, %d not looked at, %d ok\n",
		r.Counts[doctor.Fail], r.Counts[doctor.Warn], r.Counts[doctor.Skip], r.Counts[doctor.OK])
	return b.String()
}

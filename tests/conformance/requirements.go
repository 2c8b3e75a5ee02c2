package main

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/postroom/postroom/storetest"
)

//go:embed requirements.tsv
var requirementsText string

// A requirement of the functional specification, in a few words of our own. Kind
// is empty, "deviation" or "open", and then reason says why.
type requirement struct {
	id, summary, kind, reason string
	// cases are those of the suite, which every store runs.
	cases []storetest.Case
	// tests prove it once, for all stores or for one.
	tests []test
}

// stores are the columns: where the suite runs on each of them. Those that are
// absent can't be had where the page is written, and their tests are skipped there.
var stores = []struct {
	name, pkg, prefix string
	absent            bool
}{
	{"memory", "memstore", "TestSuite/", false},
	{"SQLite", "tests/stores", "TestSQLite/", false},
	{"PostgreSQL 15, database/sql + pgx", "tests/stores", "TestPostgres/pgx/", false},
	{"PostgreSQL 15, database/sql + lib/pq", "tests/stores", "TestPostgres/postgres/", false},
	{"PostgreSQL 15, pgx", "tests/stores", "TestPgx/", false},
	{"PostgreSQL 18, pgx", "tests/stores", "TestPgx18/", false},
	{"MariaDB 10.11", "tests/stores", "TestMariaDB/", false},
	{"MySQL, not run", "tests/stores", "TestMySQL/", true},
	{"SQL Server, not run", "tests/stores", "TestSQLServer/", true},
}

type conformance struct{ requirements []*requirement }

func load(root string) (*conformance, error) {
	all := &conformance{}
	byID := map[string]*requirement{}
	for line := range strings.Lines(requirementsText) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 2 && len(fields) != 4 {
			return nil, fmt.Errorf("requirements.tsv: %q has %d fields, want 2 or 4", line, len(fields))
		}
		r := &requirement{id: "IBX-" + fields[0], summary: fields[1]}
		if len(fields) == 4 {
			r.kind, r.reason = fields[2], fields[3]
		}
		all.requirements = append(all.requirements, r)
		byID[r.id] = r
	}
	for _, c := range storetest.Requirements() {
		for _, id := range c.Requirements {
			if !strings.HasPrefix(id, "IBX-") {
				continue
			}
			r, ok := byID[id]
			if !ok {
				return nil, fmt.Errorf("case %s names %s, which is not in requirements.tsv", c.Name, id)
			}
			r.cases = append(r.cases, c)
		}
	}
	tests, err := scan(root)
	if err != nil {
		return nil, err
	}
	for _, t := range tests {
		for _, id := range t.requirements {
			r, ok := byID[id]
			if !ok {
				return nil, fmt.Errorf("test %s names %s, which is not in requirements.tsv", t.name, id)
			}
			r.tests = append(r.tests, t)
		}
	}
	return all, nil
}

// gaps fails when a requirement has neither a test nor a reason to have none, or
// when it is called open although it has one.
func (all *conformance) gaps() error {
	var errs []error
	for _, r := range all.requirements {
		proved := len(r.cases)+len(r.tests) > 0
		switch {
		case !proved && r.kind == "":
			errs = append(errs, fmt.Errorf("%s (%s) has no test: name one after it, or say in requirements.tsv why it is open", r.id, r.summary))
		case proved && r.kind == "open":
			errs = append(errs, fmt.Errorf("%s (%s) has a test: it is no longer open in requirements.tsv", r.id, r.summary))
		}
	}
	return errors.Join(errs...)
}

// packages are those whose tests prove something.
func (all *conformance) packages() []string {
	var list []string
	for _, s := range stores {
		list = append(list, s.pkg)
	}
	for _, r := range all.requirements {
		for _, t := range r.tests {
			list = append(list, t.pkg)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

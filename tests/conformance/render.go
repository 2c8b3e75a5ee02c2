package main

import (
	"fmt"
	"strings"
)

// render makes the page. It depends on names only, never on times, so that it
// changes when what is proved changes.
func (all *conformance) render() string {
	var b strings.Builder
	b.WriteString(`# Conformance

Which requirement of the inbox's functional specification is proved by which
tests. ` + "`make conformance`" + ` runs them, fails on a gap, and writes this page.

A number is how many cases of the suite prove the requirement on that store; all
of them pass. One in brackets has the same cases, which are run only where
somebody says where such a server is ([stores.md](stores.md)). *Once* names tests
that need no particular store, or that are about one. ⚠ marks a deviation and ○
what is open; both are explained below.

The suite also proves what has no number there: the transition table (TABLE),
order within a group (LANE), what must never happen (NEVER) and the promise (P).

`)
	b.WriteString("| requirement | |")
	for _, s := range stores {
		fmt.Fprintf(&b, " %s |", s.name)
	}
	b.WriteString(" once |\n|---|---|" + strings.Repeat("---|", len(stores)+1) + "\n")
	for _, r := range all.requirements {
		mark := map[string]string{"deviation": " ⚠", "open": " ○"}[r.kind]
		fmt.Fprintf(&b, "| %s%s | %s |", r.id, mark, r.summary)
		for _, s := range stores {
			cell := ""
			if n := len(r.cases); n > 0 {
				cell = fmt.Sprint(n)
				if s.absent {
					cell = "(" + cell + ")"
				}
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		names := make([]string, len(r.tests))
		for i, t := range r.tests {
			names[i] = "`" + strings.TrimPrefix(t.pkg+".", "..") + t.name + "`"
		}
		fmt.Fprintf(&b, " %s |\n", strings.Join(names, ", "))
	}
	all.explain(&b, "deviation", "\n## Deviations\n\nWhat is done otherwise than the specification says, on purpose.\n\n")
	all.explain(&b, "open", "\n## Open\n\nNot proved yet.\n\n")
	return b.String()
}

func (all *conformance) explain(b *strings.Builder, kind, heading string) {
	b.WriteString(heading + "| requirement | | reason |\n|---|---|---|\n")
	for _, r := range all.requirements {
		if r.kind == kind {
			fmt.Fprintf(b, "| %s | %s | %s |\n", r.id, r.summary, r.reason)
		}
	}
}

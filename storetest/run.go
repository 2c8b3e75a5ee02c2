// Package storetest is the suite that every store passes, ours and anyone's.
//
// The name of a case begins with the requirements that it proves, joined by +:
// IBX-nnn of the functional specification, TABLE for the transition table, LANE
// for order within a group, EXPIRY for messages past their time, OPS for what
// operators see and do, NEVER-nn for a row of "what must never happen", and P1
// to P5 for the promise. A case that fails says what a store is expected to do
// and why.
package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/box"
)

// A Harness is an open store and what the suite needs besides.
type Harness struct {
	// Store is empty, and closed by whoever opened it, after the test.
	Store box.Store
	// Advance lets time pass for the store: a memory store moves its clock, an
	// SQL store shifts the times in its rows into the past.
	Advance func(d time.Duration)
	// DuplicateBreaksTx says that a caller's transaction may be unusable after
	// it met a message that another one had inserted: it gets
	// postroom.ErrRetry. Default: it stays usable.
	DuplicateBreaksTx bool
}

// A Case is one case of the suite.
type Case struct {
	// Theme and Name are the last two parts of the test's name.
	Theme, Name string
	// Requirements are what the case proves.
	Requirements []string
}

type theme struct {
	name  string
	cases []entry
}

type entry struct {
	name string
	run  func(c *suite)
}

func themes() []theme {
	return []theme{
		{"check", checkCases},
		{"receive", receiveCases},
		{"content", contentCases},
		{"claim", claimCases},
		{"settle", settleCases},
		{"table", tableCases},
		{"guard", guardCases},
		{"reap", reapCases},
		{"lane", laneCases},
		{"retention", retentionCases},
		{"operate", operateCases},
		{"stats", statsCases},
		{"names", nameCases},
		{"tx", txCases},
		{"outbox", outboxCases},
		{"race", raceCases},
		{"close", closeCases},
	}
}

// Run proves a store. open gives a fresh store; it is called once per theme, and
// the cases of a theme share what it gave, each with a consumer of its own.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, theme := range themes() {
		t.Run(theme.name, func(t *testing.T) {
			h := open(t)
			for _, e := range theme.cases {
				t.Run(e.name, func(t *testing.T) { e.run(newSuite(t, h)) })
			}
		})
	}
}

// Requirements lists the cases in the order in which they run.
func Requirements() []Case {
	var all []Case
	for _, theme := range themes() {
		for _, e := range theme.cases {
			ids, _, _ := strings.Cut(e.name, "_")
			all = append(all, Case{Theme: theme.name, Name: e.name, Requirements: strings.Split(ids, "+")})
		}
	}
	return all
}

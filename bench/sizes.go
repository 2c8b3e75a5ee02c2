package main

import (
	"fmt"
	"time"
)

// sizes of a run. What a system does within a time is counted, so that a slow
// one does not make the run long.
type sizes struct {
	form string
	// goalRounds is how often a rate with a goal is measured, rounds the rest.
	goalRounds, rounds int
	// span is how long messages are received, and how long a drain may take.
	span, drainSpan time.Duration
	// drain is how many messages wait when a drain begins.
	drain int
	// latency is how long messages are sent at 200 a second.
	latency time.Duration
	// How many rows lie beside.
	done, scheduled, queued int
	// besideRounds is how often a drain beside them is measured.
	besideRounds int
	// fewer divides, for all but PostgreSQL, what lies beside and how long a
	// snapshot is held.
	fewer int
	// snapshot is how long a snapshot is held open.
	snapshot time.Duration
	// lease of the worker that is killed, and how many messages it holds.
	lease time.Duration
	held  int
	// patient waits for River's rescuer, which looks every 30 seconds.
	patient bool
	// waiting messages, of which a worker's memory must not depend.
	waiting int
}

// smaller keeps the whole run within its time, for databases other than
// PostgreSQL, which has most of the goals.
func (s sizes) smaller() sizes {
	s.goalRounds, s.rounds, s.besideRounds = s.rounds, 1, 1
	s.span, s.drainSpan, s.latency, s.drain = s.span/2, s.drainSpan/2, s.latency/2, s.drain/2
	s.done, s.scheduled, s.queued, s.waiting = s.done/s.fewer, s.scheduled/s.fewer, s.queued/s.fewer, s.waiting/s.fewer
	s.snapshot /= time.Duration(s.fewer)
	s.lease = min(s.lease, 5*time.Second)
	return s
}

// roundsText says how often figures are measured.
func (s sizes) roundsText() string {
	if s.goalRounds == 1 {
		return "one each"
	}
	return fmt.Sprintf("%d of rates with a goal on PostgreSQL, %d or fewer of others", s.goalRounds, s.rounds)
}

var forms = []sizes{
	{
		form: "full", goalRounds: 4, rounds: 2, span: time.Second, drainSpan: 1500 * time.Millisecond, drain: 45_000, latency: 2 * time.Second,
		done: 5_000_000, scheduled: 1_000_000, queued: 200_000, besideRounds: 3, fewer: 10,
		snapshot: 2 * time.Minute, lease: 30 * time.Second, held: 100, patient: true, waiting: 1_000_000,
	},
	{
		form: "quick", goalRounds: 1, rounds: 1, span: 150 * time.Millisecond, drainSpan: 300 * time.Millisecond, drain: 6_000, latency: 250 * time.Millisecond,
		done: 10_000, scheduled: 5_000, queued: 2_000, besideRounds: 1, fewer: 2,
		snapshot: time.Second, lease: time.Second, held: 50, waiting: 10_000,
	},
	{
		form: "smoke", goalRounds: 1, rounds: 1, span: 5 * time.Millisecond, drainSpan: 20 * time.Second, drain: 20, latency: 25 * time.Millisecond,
		done: 50, scheduled: 50, queued: 50, besideRounds: 1, fewer: 1,
		snapshot: 20 * time.Millisecond, lease: 500 * time.Millisecond, held: 5, waiting: 50,
	},
}

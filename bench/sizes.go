package main

import "time"

// sizes of a run. What a system does within a time is counted, so that a slow
// one does not make the run long.
type sizes struct {
	form   string
	rounds int
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
	// fewer divides, for all but PostgreSQL, what lies beside and how long it is
	// held.
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

// smaller is for databases beside which less lies.
func (s sizes) smaller() sizes {
	s.done, s.scheduled, s.queued, s.waiting = s.done/s.fewer, s.scheduled/s.fewer, s.queued/s.fewer, s.waiting/s.fewer
	s.snapshot /= time.Duration(s.fewer)
	return s
}

// shorter keeps the whole run within its time, for a database of which no peer
// is measured.
func (s sizes) shorter() sizes {
	if s.form == "full" {
		s.span, s.drain, s.drainSpan, s.latency = time.Second, s.drain/2, 3*time.Second/2, 2*time.Second
		s.besideRounds, s.lease = 1, 10*time.Second
	}
	return s
}

var forms = []sizes{
	{
		form: "full", rounds: 2, span: time.Second, drainSpan: 2 * time.Second, drain: 40_000, latency: 4 * time.Second,
		done: 5_000_000, scheduled: 1_000_000, queued: 200_000, besideRounds: 2, fewer: 5,
		snapshot: 2 * time.Minute, lease: 30 * time.Second, held: 100, patient: true, waiting: 1_000_000,
	},
	{
		form: "quick", rounds: 2, span: 150 * time.Millisecond, drainSpan: 400 * time.Millisecond, drain: 4_000, latency: 400 * time.Millisecond,
		done: 20_000, scheduled: 10_000, queued: 5_000, besideRounds: 1, fewer: 5,
		snapshot: time.Second, lease: time.Second, held: 50, waiting: 20_000,
	},
	{
		form: "smoke", rounds: 1, span: 5 * time.Millisecond, drainSpan: 20 * time.Second, drain: 20, latency: 25 * time.Millisecond,
		done: 50, scheduled: 50, queued: 50, besideRounds: 1, fewer: 1,
		snapshot: 20 * time.Millisecond, lease: 500 * time.Millisecond, held: 5, waiting: 50,
	},
}

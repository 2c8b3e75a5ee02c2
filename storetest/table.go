package storetest

import (
	"strings"
)

// A transition is a row of the transition table: what one operation does to a
// message in each state. A cell gives the answer and where the message stands
// afterwards; a dot means that it stands where it stood.
type transition struct {
	operation string
	do        func(c *suite, s *subject) string
	// rest is the cell of each state that is not among the cells.
	rest  string
	cells map[string]string
}

// transitions is the table of DESIGN §3, with waiting and leased told apart by
// what makes a difference. The states are made in states.go.
var transitions = []transition{
	{"check", doCheck, "accepted .", map[string]string{
		"none": "accepted seen",
		"done": "duplicate .",
	}},
	{"receive the same", doReceive, "duplicate .", map[string]string{
		"none":              "accepted ready",
		"seen":              "accepted ready",
		"idle":              "replaced ready",
		"expired":           "duplicate ready",
		"guarded expired":   "dead dead",
		"releasing expired": "accepted ready",
		"dead":              "dead .",
	}},
	{"receive another", doReceiveOther, "replaced .", map[string]string{
		"none":              "accepted ready",
		"seen":              "accepted ready",
		"idle":              "replaced ready",
		"expired":           "replaced ready",
		"guarded expired":   "dead dead",
		"releasing expired": "accepted ready",
		"dead":              "dead .",
		"done":              "duplicate .",
	}},
	{"receive another to keep", doReceiveKeep, "conflict .", map[string]string{
		"none":              "accepted ready",
		"seen":              "accepted ready",
		"idle":              "replaced ready",
		"expired":           "conflict ready",
		"guarded expired":   "dead dead",
		"releasing expired": "accepted ready",
		"dead":              "dead .",
		"done":              "duplicate .",
	}},
	{"receive malformed", doReceiveMalformed, "conflict .", map[string]string{
		"none":              "dead dead",
		"seen":              "dead dead",
		"idle":              "dead dead",
		"expired":           "conflict ready",
		"guarded expired":   "dead dead",
		"releasing expired": "dead dead",
		"dead":              "dead .",
		"done":              "duplicate .",
	}},
	{"once", doOnce, "accepted done", map[string]string{
		"deferred":        "ErrInProgress .",
		"arrived":         "ErrInProgress .",
		"queued":          "ErrInProgress .",
		"head":            "ErrInProgress .",
		"leased":          "ErrInProgress .",
		"guarded":         "ErrInProgress .",
		"releasing":       "ErrInProgress .",
		"guarded expired": "ErrDead dead",
		"dead":            "ErrDead .",
		"done":            "duplicate .",
	}},
	{"guard", doGuard, "accepted leased", map[string]string{
		"deferred":        "ErrInProgress .",
		"arrived":         "ErrInProgress .",
		"queued":          "ErrInProgress .",
		"head":            "ErrInProgress .",
		"leased":          "ErrInProgress .",
		"guarded":         "ErrInProgress .",
		"releasing":       "ErrInProgress .",
		"guarded expired": "ErrDead dead",
		"dead":            "ErrDead .",
		"done":            "duplicate .",
	}},
	{"claim", doClaim, "nothing .", map[string]string{
		"ready":   "claimed leased",
		"arrived": "claimed leased",
		"head":    "claimed leased",
	}},
	{"ack", doAck, "ignored .", map[string]string{
		"leased":            "applied done",
		"expired":           "applied done",
		"guarded":           "applied done",
		"guarded expired":   "applied done",
		"releasing":         "applied done",
		"releasing expired": "applied done",
	}},
	{"abandon", doAbandon, "ignored .", map[string]string{
		"leased":            "applied scheduled",
		"expired":           "applied scheduled",
		"guarded":           "applied dead",
		"guarded expired":   "applied dead",
		"releasing":         "applied none",
		"releasing expired": "applied none",
	}},
	{"fail", doFail, "ignored .", map[string]string{
		"leased":            "applied dead",
		"expired":           "applied dead",
		"guarded":           "applied dead",
		"guarded expired":   "applied dead",
		"releasing":         "applied dead",
		"releasing expired": "applied dead",
	}},
	{"extend", doExtend, "ignored .", map[string]string{
		"leased":            "applied .",
		"expired":           "applied .",
		"guarded":           "applied .",
		"guarded expired":   "applied .",
		"releasing":         "applied .",
		"releasing expired": "applied .",
	}},
	{"release", doRelease, "ignored .", map[string]string{
		"leased":            "applied ready",
		"expired":           "applied ready",
		"guarded":           "applied ready",
		"guarded expired":   "applied ready",
		"releasing":         "applied ready",
		"releasing expired": "applied ready",
	}},
	{"reap", doReap, "nothing .", map[string]string{
		"expired":           "reaped ready",
		"guarded expired":   "reaped dead",
		"releasing expired": "reaped none",
	}},
	{"mark processing", doMarkProcessing, "nothing .", map[string]string{
		"seen":              "changed idle",
		"expired":           "changed ready",
		"guarded expired":   "changed dead",
		"releasing expired": "changed none",
	}},
	{"mark processed", doMarkProcessed, "changed done", map[string]string{
		"none":              "nothing .",
		"leased":            "ErrLeased .",
		"guarded":           "ErrLeased .",
		"releasing":         "ErrLeased .",
		"releasing expired": "changed none",
		"done":              "nothing .",
	}},
	{"mark dead", doMarkDead, "changed dead", map[string]string{
		"none":              "nothing .",
		"leased":            "ErrLeased .",
		"guarded":           "ErrLeased .",
		"releasing":         "ErrLeased .",
		"releasing expired": "changed none",
		"dead":              "nothing .",
		"done":              "nothing .",
	}},
	{"requeue", doRequeue, "nothing .", map[string]string{
		"none":              "ErrNotFound .",
		"seen":              "ErrNotFound .",
		"leased":            "ErrLeased .",
		"expired":           "changed ready",
		"guarded":           "ErrLeased .",
		"guarded expired":   "changed ready",
		"releasing":         "ErrLeased .",
		"releasing expired": "ErrNotFound none",
		"dead":              "changed ready",
		"done":              "ErrDone .",
	}},
	{"replay", doReplay, "nothing .", map[string]string{
		"none":              "ErrNotFound .",
		"seen":              "ErrNotFound .",
		"leased":            "ErrLeased .",
		"expired":           "changed ready",
		"guarded":           "ErrLeased .",
		"guarded expired":   "changed ready",
		"releasing":         "ErrLeased .",
		"releasing expired": "ErrNotFound none",
		"dead":              "changed ready",
		"done":              "changed ready",
	}},
	{"discard", doDiscard, "changed done", map[string]string{
		"none":              "ErrNotFound .",
		"leased":            "ErrLeased .",
		"guarded":           "ErrLeased .",
		"releasing":         "ErrLeased .",
		"releasing expired": "ErrNotFound none",
		"done":              "nothing .",
	}},
	{"cleanup", doCleanup, "kept .", map[string]string{
		"done": "removed none",
	}},
}

// tableCases makes a case of each cell.
var tableCases = func() []entry {
	var cases []entry
	for _, row := range transitions {
		for _, state := range states {
			cell, ok := row.cells[state.name]
			if !ok {
				cell = row.rest
			}
			name := "TABLE+NEVER-23_" + strings.ReplaceAll(row.operation+" on "+state.name, " ", "_")
			cases = append(cases, entry{name, func(c *suite) {
				s := &subject{id: "a"}
				state.make(c, s)
				before := c.stands(s.id)
				if before != state.stands {
					c.Fatalf("the message is %s before the operation, want %s", before, state.stands)
				}
				got := row.do(c, s) + " " + c.stands(s.id)
				if want := strings.Replace(cell, ".", before, 1); got != want {
					c.Errorf("%s on %s (%s): got %q, want %q", row.operation, state.name, state.how, got, want)
				}
			}})
		}
	}
	return cases
}()

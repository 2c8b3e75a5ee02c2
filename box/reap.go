package box

import (
	"time"

	"github.com/postroom/postroom"
)

// A message is a suspect after SuspectAt lost leases, and Dead after MaxLost.
const (
	SuspectAt = 3
	MaxLost   = 5
)

// Texts that a message dies with when it did not run to an end.
const (
	UnknownOutcome = "unknown outcome"
	ProcessDied    = "process died"
	Expired        = "expired"
)

// ReapRules say what becomes of a message whose process keeps dying.
type ReapRules struct {
	// Hold: if this makes the head of a lane Dead, its group waits for it.
	Hold bool
	// NeverDead: it stays a suspect however often its lease is lost.
	NeverDead bool
}

// A ReapRequest asks to end expired leases.
type ReapRequest struct {
	Consumer string
	// Limit is how many leases are ended at most. Default 500.
	Limit int
	ReapRules
}

// Reaped is a message whose lease had expired.
type Reaped struct {
	Key   postroom.Key
	Topic string
	// State after it: Processing, Dead, Seen, or None when a guarded message was
	// forgotten.
	State postroom.State
	// Lost is how many of its leases were lost in a row; Error what it died with.
	Lost  int
	Error string
}

// Reap ends an expired lease. The store has checked the expiry and holds the
// lock of the row.
func Reap(w Work, now time.Time, rules ReapRules) Change {
	if w.Guard != GuardNone {
		return reapGuarded(w, now)
	}
	w.Lost++
	if w.Lost >= MaxLost && !rules.NeverDead {
		c := w.die(ProcessDied)
		c.Vacate = c.Vacate && !rules.Hold
		c.Lost = true
		return c
	}
	c := w.wait(now)
	c.Lost = true
	return c
}

// reapGuarded keeps owner and fence of a message whose outcome is unknown, so
// that its run can still report success.
func reapGuarded(w Work, now time.Time) Change {
	if w.Guard != GuardKeep {
		c := w.unguard(now, UnknownOutcome, 0)
		c.Lost = true
		return c
	}
	owner, fence := w.Owner, w.Fence
	c := w.die(UnknownOutcome)
	c.Work.Owner, c.Work.Fence, c.Work.Guard = owner, fence, GuardKeep
	c.Lost = true
	return c
}

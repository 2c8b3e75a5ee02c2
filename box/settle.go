package box

import (
	"time"

	"github.com/postroom/postroom"
)

// A Verb ends a lease.
type Verb uint8

// The verbs that end a lease.
const (
	// Ack: the run succeeded. The message is Done.
	Ack Verb = iota + 1
	// Abandon: the run failed. The message waits for its next one; a guarded
	// one goes where its guard mode says.
	Abandon
	// Fail: the run failed for good. The message is Dead.
	Fail
	// Release: it was not run. The message waits again, at no cost.
	Release
	// Expire: it was not run and never will be. The message is Dead.
	Expire
	// Park: its topic is paused. The message waits for the topic to go on.
	Park
)

var verbNames = [...]string{"", "ack", "abandon", "fail", "release", "expire", "park"}

func (v Verb) String() string { return verbNames[v] }

// A Settlement asks to end one lease.
type Settlement struct {
	Lease postroom.Lease
	Verb  Verb
	// Error is what the run ended with, for Abandon and Fail.
	Error string
	// Delay holds the next run back. 0: for Abandon the default backoff, for
	// Release at once.
	Delay time.Duration
	// Forget: an Ack leaves nothing of the message, not even that it is done.
	Forget bool
	// Handler, Discarded and Note are recorded with an Ack.
	Handler   string
	Discarded bool
	Note      string
	// Hold: if this makes the head of a lane Dead, its group waits for it.
	Hold bool
	// Grouped says that the message is in a group. Only time is lost if that is wrong.
	Grouped bool
}

// SettlementOf gives what a handler's verdict asks for. The delay is set for
// RetryAfter only.
func SettlementOf(handler string, verdict error) Settlement {
	s := Settlement{Handler: handler}
	v, delay, reason := postroom.VerdictOf(verdict)
	switch v {
	case postroom.VerdictDone:
		s.Verb = Ack
	case postroom.VerdictDiscard:
		s.Verb, s.Discarded, s.Note = Ack, true, reason
	case postroom.VerdictDead:
		s.Verb, s.Error = Fail, verdict.Error()
	default:
		s.Verb, s.Error = Abandon, verdict.Error()
		if v == postroom.VerdictRetryAfter {
			s.Delay = Soon(delay)
		}
	}
	return s
}

// Soon makes a delay of "at once", for which a Settlement would take its default.
func Soon(d time.Duration) time.Duration { return max(d, time.Microsecond) }

// Settled says what a settlement did.
type Settled struct {
	// Applied: the lease was current and has ended.
	Applied bool
	// Locked: another transaction has the row; try again.
	Locked bool
	// State is the state of the message after it, when Applied.
	State postroom.State
	// Superseded: the content that ran is not the newest received.
	Superseded bool
}

// An Extension says what extending a lease did.
type Extension struct {
	Extended bool
	// Until is the new end of the lease.
	Until time.Time
	// Locked: another transaction has the row; try again.
	Locked bool
}

// Current reports whether a lease is the one that the row is under.
func (w *Work) Current(l postroom.Lease) bool {
	return w.Stage == postroom.StageLeased && w.Owner == l.Owner && w.Fence == l.Fence
}

// late reports whether a guarded run came back after its lease had been reaped
// as an unknown outcome: nobody has run it since.
func (w *Work) late(l postroom.Lease) bool {
	return w.Stage == postroom.StageDead && w.Guard == GuardKeep && w.Owner == l.Owner && w.Fence == l.Fence
}

// Decide gives the result of a settlement and the change it needs. The store
// holds the lock of the row.
func (s *Settlement) Decide(w Work, now time.Time) (Settled, Change) {
	late := w.late(s.Lease)
	if !w.Current(s.Lease) && !(late && (s.Verb == Ack || s.Verb == Abandon || s.Verb == Fail)) {
		return Settled{}, Change{}
	}
	var c Change
	switch s.Verb {
	case Ack:
		if s.Forget {
			return Settled{Applied: true, State: postroom.StateDone}, Change{Fate: Forget, Work: w, Vacate: w.Group != ""}
		}
		c = Change{Fate: ToDone, Work: w, Vacate: w.Group != "", Done: w.done(now, s.Handler, w.Attempt+1)}
		c.Done.Revision = s.Lease.Revision
		c.Done.Superseded = s.Lease.Revision < w.Revision
		c.Done.Discarded, c.Done.Note = s.Discarded, postroom.ErrorText(s.Note)
	case Abandon:
		c = s.abandon(w, now)
	case Fail:
		w.Attempt++
		c = w.die(s.Error)
	case Expire:
		c = w.die(Expired)
	case Release:
		if s.Delay > 0 {
			w.Retry = now.Add(s.Delay)
		}
		c = w.wait(now)
	case Park:
		w.unlease()
		w.Stage = postroom.StageParked
		c = Change{Fate: Update, Work: w}
	}
	if s.Hold && c.Fate == Update {
		c.Vacate = false
	}
	return Settled{Applied: true, State: c.State(), Superseded: c.Done.Superseded}, c
}

func (s *Settlement) abandon(w Work, now time.Time) Change {
	if w.Guard != GuardNone {
		return w.unguard(now, s.Error, s.Delay)
	}
	w.failed(s.Error, s.Delay, now)
	return w.wait(now)
}

// failed counts a run that came back without success.
func (w *Work) failed(text string, delay time.Duration, now time.Time) {
	w.Attempt++
	w.Lost = 0
	w.LastError = postroom.ErrorText(text)
	if delay == 0 {
		delay = postroom.DefaultBackoff(w.Attempt)
	}
	w.Retry = now.Add(delay)
}

// wait ends a lease and lets the message wait for the next one.
func (w *Work) wait(now time.Time) Change {
	head := w.head()
	w.unlease()
	w.place(head, now)
	return Change{Fate: Update, Work: *w}
}

// unguard ends a guarded lease without success, by the mode stored with it.
func (w *Work) unguard(now time.Time, text string, delay time.Duration) Change {
	switch w.Guard {
	case GuardToNone:
		return Change{Fate: Forget, Work: *w}
	case GuardToSeen:
		w.unlease()
		w.Stage = postroom.StageSeen
		return Change{Fate: Update, Work: *w}
	case GuardToWaiting:
		w.failed(text, delay, now)
		return w.wait(now)
	default:
		w.Attempt++
		return w.die(text)
	}
}

package box

import (
	"time"

	"github.com/postroom/postroom"
)

// Work is the row of a live message: what is still to do with it.
type Work struct {
	Seq      int64
	Consumer string
	Topic    string
	// Group is empty when the message is not ordered, also while it is guarded
	// and was not received: a guarded message is in no lane.
	Group string
	Stage postroom.Stage
	// Position orders a group, ReadyPosition orders claims. Either may be
	// NewPosition, which the store replaces by its next number.
	Position, ReadyPosition int64
	Attempt, Lost           int
	// Due is what the sender asked for, Retry what the last run led to.
	Due, Retry time.Time
	Expires    time.Time
	Owner      string
	Fence      int64
	Until      time.Time
	Guard      GuardMode
	Revision   int
	LastError  string
	LastSeen   time.Time
}

// NewPosition stands for the next number of the store's sequence.
const NewPosition = -1

// A GuardMode is stored with a guarded lease: what a failure turns it into.
type GuardMode uint8

// The guard modes.
const (
	// GuardNone: the lease is not a guarded one.
	GuardNone GuardMode = iota
	// GuardKeep: a failure makes the message Dead.
	GuardKeep
	// GuardToNone, GuardToSeen and GuardToWaiting: a failure returns it to what
	// it was before.
	GuardToNone
	GuardToSeen
	GuardToWaiting
)

// Done is the row of a message that came to its end.
type Done struct {
	Seq      int64
	Consumer string
	At       time.Time
	// Runs counts the runs, including the last.
	Runs    int
	Handler string
	// Revision is the content that ran.
	Revision int
	// Superseded: a newer content had been received by then.
	Superseded bool
	// Discarded: it ended without an effect, for the reason in Note.
	Discarded bool
	Note      string
	// Fence goes on from here when the message is replayed.
	Fence    int64
	LastSeen time.Time
	// Purged: the payload is past its retention and gone.
	Purged bool
}

// A Fate is what happens to the rows of a message.
type Fate uint8

// The fates of a message's rows.
const (
	// Untouched: nothing is written.
	Untouched Fate = iota
	// Insert adds the work row of a new message.
	Insert
	// InsertDone adds the done row of a new message, which has no work row.
	InsertDone
	// Update writes the work row.
	Update
	// ToDone deletes the work row and adds the done row.
	ToDone
	// Forget deletes the work row and the message.
	Forget
	// Reopen deletes the done row and adds the work row.
	Reopen
)

// A Change is what a store writes. The rules make it; the store adds nothing.
type Change struct {
	Fate Fate
	Work Work
	Done Done
	// Vacate: the message leaves its lane, whose head becomes null if it is this.
	Vacate bool
	// Content: the stored content becomes that of the Put, under Work.Revision.
	Content bool
	// Regroup: the stored group too becomes that of the Put.
	Regroup bool
	// AdoptHash: the stored hash, when null, becomes that of the Put.
	AdoptHash bool
	// Lost: an expired lease was counted as lost.
	Lost bool
	// Died is the error with which the message became Dead in this change.
	Died string
}

// State is the state of the message after the change.
func (c *Change) State() postroom.State {
	switch c.Fate {
	case InsertDone, ToDone:
		return postroom.StateDone
	case Forget:
		return postroom.StateNone
	default:
		return c.Work.Stage.State()
	}
}

// Lease is the lease that the row describes.
func (w *Work) Lease() postroom.Lease {
	return postroom.Lease{Seq: w.Seq, Owner: w.Owner, Fence: w.Fence, Revision: w.Revision, Until: w.Until}
}

// Next is when a waiting message can run: the later of due and retry.
func (w *Work) Next() time.Time {
	if w.Retry.After(w.Due) {
		return w.Retry
	}
	return w.Due
}

// head reports whether the row is the head of its lane: the head is the only
// one of a group that can be scheduled, ready, parked, suspect or leased.
func (w *Work) head() bool {
	if w.Group == "" {
		return false
	}
	switch w.Stage {
	case postroom.StageScheduled, postroom.StageReady, postroom.StageSuspect, postroom.StageParked:
		return true
	case postroom.StageLeased:
		return w.Guard == GuardNone
	}
	return false
}

func (w *Work) expired(now time.Time) bool {
	return w.Stage == postroom.StageLeased && !w.Until.After(now)
}

// place puts a waiting message where it belongs. A ready or suspect message
// keeps its turn, and a queued or arrived one its position; what becomes ready
// or arrives anew takes a new one, unless the caller set Position before.
func (w *Work) place(head bool, now time.Time) {
	was := w.Stage
	later := w.Next().After(now)
	switch {
	case w.Topic == "":
		w.Stage = postroom.StageIdle
	case w.Group != "" && !head && later:
		w.Stage = postroom.StageDeferred
	case w.Group != "" && !head:
		if was == postroom.StageQueued {
			return
		}
		if was == postroom.StageDeferred {
			w.Position = NewPosition
		}
		w.Stage = postroom.StageArrived
	case later:
		w.Stage = postroom.StageScheduled
	case was == postroom.StageParked:
		return
	case w.Lost >= SuspectAt:
		w.Stage = postroom.StageSuspect
	default:
		w.Stage = postroom.StageReady
	}
	if w.Stage != was && (w.Stage == postroom.StageReady || w.Stage == postroom.StageSuspect) {
		w.ReadyPosition = NewPosition
	}
}

// FellDue reports whether the time has come that the row waited for.
func (w *Work) FellDue(now time.Time) bool {
	return (w.Stage == postroom.StageScheduled || w.Stage == postroom.StageDeferred) && !w.Next().After(now)
}

// Promote lets a row go on that waited for its time (scheduled, deferred), for
// its topic (parked) or for its turn in the lane (queued).
func (w Work) Promote() Change {
	switch {
	case w.Stage == postroom.StageDeferred:
		w.Stage, w.Position = postroom.StageArrived, NewPosition
	case w.Lost >= SuspectAt:
		w.Stage, w.ReadyPosition = postroom.StageSuspect, NewPosition
	default:
		w.Stage, w.ReadyPosition = postroom.StageReady, NewPosition
	}
	return Change{Fate: Update, Work: w}
}

// guard leases the row for a guarded run. back is where a failure returns it to
// under ReleaseOnError.
func (w *Work) guard(p *Put, back GuardMode, now time.Time) {
	w.Guard = GuardKeep
	if p.ReleaseOnError {
		w.Guard = back
	}
	w.Stage = postroom.StageLeased
	w.Owner, w.Until = p.Owner, now.Add(p.Lease)
	w.Fence++
}

func (w *Work) done(now time.Time, handler string, runs int) Done {
	return Done{
		Seq: w.Seq, Consumer: w.Consumer, At: now, Runs: runs, Handler: handler,
		Revision: w.Revision, Fence: w.Fence, LastSeen: w.LastSeen,
	}
}

// unlease gives the lease up without saying where the message goes.
func (w *Work) unlease() {
	w.Owner, w.Until, w.Guard = "", time.Time{}, GuardNone
}

// die makes the row Dead.
func (w *Work) die(text string) Change {
	vacate := w.Group != "" && (w.head() || w.Stage == postroom.StageDead)
	w.unlease()
	w.Stage, w.LastError = postroom.StageDead, postroom.ErrorText(text)
	return Change{Fate: Update, Work: *w, Vacate: vacate, Died: w.LastError}
}

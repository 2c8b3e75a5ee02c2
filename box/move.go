package box

import (
	"time"

	"github.com/postroom/postroom"
)

// An Action moves a message without a lease.
type Action uint8

// The actions.
const (
	MarkProcessing Action = iota + 1
	MarkProcessed
	MarkDead
	// Requeue gives a dead message a fresh start.
	Requeue
	// Replay requeues a dead or done message under the same key.
	Replay
	// Discard ends a message without an effect.
	Discard
)

var actionNames = [...]string{"", "mark processing", "mark processed", "mark dead", "requeue", "replay", "discard"}

func (a Action) String() string { return actionNames[a] }

// A Move asks to move one message.
type Move struct {
	Key    postroom.Key
	Action Action
	// Delay holds a requeued message back.
	Delay time.Duration
	// Actor and Reason are kept in the audit. A move without an actor is not
	// audited. Reason is also the error of MarkDead and the note of Discard.
	Actor, Reason string
	// Rules are for an expired lease that is found on the message.
	Rules ReapRules
}

// An Order says who moves a message by hand, and why.
type Order struct {
	// Actor is kept in the audit with the reason. Empty: not audited.
	Actor, Reason string
	// Delay holds a requeued or replayed message back. Default: none.
	Delay time.Duration
}

// Move gives the move that is ordered.
func (o Order) Move(key postroom.Key, a Action) Move {
	return Move{Key: key, Action: a, Delay: o.Delay, Actor: o.Actor, Reason: o.Reason}
}

// A MoveResult says what a move did.
type MoveResult struct {
	// Changed is false when the message was already where the move leads.
	Changed bool
	// State is the state after the move.
	State postroom.State
	// Err is nil, postroom.ErrNotFound, ErrLeased, ErrDone or ErrPurged.
	Err error
	// Died and Lost are those of an expired lease that the move ended first.
	Died string
	Lost bool
}

// Standing is what a store has of a message that is to be moved. Of Work and
// Done at most one is set; neither means that there is no such message.
type Standing struct {
	Work *Work
	Done *Done
	// Topic, Group and Revision are those of the stored message.
	Topic, Group string
	Revision     int
	// Head: the message is still named by its lane.
	Head bool
}

// Decide gives the result of a move and the change it needs. The store holds
// the lock of the work or done row.
//
// A change whose fate is Forget ended an expired lease; the result already
// stands for the message that is gone with it.
func (m *Move) Decide(s Standing, now time.Time) (MoveResult, Change) {
	if s.Work == nil {
		return m.absent(s, now)
	}
	w := *s.Work
	var (
		c   Change
		res MoveResult
	)
	if w.expired(now) {
		c = Reap(w, now, m.Rules)
		res.Lost, res.Died = c.Lost, c.Died
		if c.Fate == Forget {
			res, _ := m.absent(Standing{}, now)
			res.Lost, res.Changed = true, true
			return res, c
		}
		w = c.Work
	}
	err := m.live(w, s, now, &c)
	res.Err, res.Changed = err, c.Fate != Untouched
	if c.Fate == Untouched {
		c.Work = w
	}
	res.State = c.State()
	return res, c
}

// absent is the decision for a message that is done or not there.
func (m *Move) absent(s Standing, now time.Time) (MoveResult, Change) {
	if s.Done == nil {
		if m.Action >= Requeue {
			return MoveResult{Err: postroom.ErrNotFound}, Change{}
		}
		return MoveResult{}, Change{}
	}
	res := MoveResult{State: postroom.StateDone}
	switch {
	case m.Action == Requeue:
		res.Err = postroom.ErrDone
	case m.Action == Replay && s.Done.Purged:
		res.Err = postroom.ErrPurged
	case m.Action == Replay:
		w := Work{
			Seq: s.Done.Seq, Consumer: s.Done.Consumer, Topic: s.Topic, Group: s.Group,
			Position: NewPosition, ReadyPosition: NewPosition,
			Fence: s.Done.Fence, Revision: s.Revision, LastSeen: s.Done.LastSeen,
		}
		w.hold(m.Delay, now)
		w.place(false, now)
		return MoveResult{Changed: true, State: postroom.StateProcessing}, Change{Fate: Reopen, Work: w, Done: *s.Done}
	}
	return res, Change{}
}

// live is the decision for a message that has a work row. It leaves c as it is
// where the move does nothing.
func (m *Move) live(w Work, s Standing, now time.Time, c *Change) error {
	switch {
	case m.Action == MarkProcessing:
		if w.Stage == postroom.StageSeen {
			w.Group, w.Position = s.Group, NewPosition
			w.place(false, now)
			*c = Change{Fate: Update, Work: w}
		}
		return nil
	case w.Stage == postroom.StageLeased:
		return postroom.ErrLeased
	}
	switch m.Action {
	case MarkProcessed:
		*c = Change{Fate: ToDone, Work: w, Vacate: w.Group != "", Done: w.done(now, "", w.Attempt)}
	case MarkDead:
		if w.Stage != postroom.StageDead {
			*c = w.die(m.Reason)
		}
	case Discard:
		*c = Change{Fate: ToDone, Work: w, Vacate: w.Group != "", Done: w.done(now, "", w.Attempt)}
		c.Done.Discarded, c.Done.Note = true, postroom.ErrorText(m.Reason)
	case Requeue, Replay:
		if w.Stage == postroom.StageSeen {
			return postroom.ErrNotFound
		}
		if w.Stage == postroom.StageDead {
			*c = m.requeue(w, s, now)
		}
	}
	return nil
}

// requeue gives a dead message a fresh start: at its old place in its group, as
// the head if its lane still waits for it. What had expired may run now, since
// an operator asked for it.
func (m *Move) requeue(w Work, s Standing, now time.Time) Change {
	w.unlease()
	w.Attempt, w.Lost = 0, 0
	w.Due, w.Retry, w.Expires = time.Time{}, time.Time{}, time.Time{}
	w.Group = s.Group
	w.hold(m.Delay, now)
	w.place(s.Head, now)
	return Change{Fate: Update, Work: w}
}

func (w *Work) hold(delay time.Duration, now time.Time) {
	if delay > 0 {
		w.Retry = now.Add(delay)
	}
}

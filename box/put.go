package box

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/postroom/postroom"
)

// A Mode says what taking a message in is for.
type Mode uint8

// The modes of taking a message in.
const (
	// Check: only ask whether it was processed, and remember that it was seen.
	Check Mode = iota + 1
	// Queue: keep it to be handled later.
	Queue
	// Once: it is Done when the surrounding transaction commits.
	Once
	// Guard: lease it now, run it, settle it afterwards.
	Guard
)

// A Put asks to take one message in. Its message has passed validation.
type Put struct {
	Mode    Mode
	Message postroom.Message
	// Divert: do not wait for whoever holds the message; its result is ErrHeld.
	Divert bool
	// Keep leaves the content of a known message as it is.
	Keep bool
	// Dead is why a message that is not known yet, or only looked up, is Dead from
	// the start, for Queue. A known one is left as it is. Empty: it is not.
	Dead string
	// Handler is recorded with the outcome, for Once.
	Handler string
	// Owner, Lease and ReleaseOnError are the lease of Guard.
	Owner          string
	Lease          time.Duration
	ReleaseOnError bool
	// Rules are for an expired lease that is found on the message.
	Rules ReapRules
}

// Digest identifies what makes two deliveries the same content: topic, payload
// and due time. Headers are left out, because brokers and tracers change them
// with every delivery. A message without topic and payload has no content.
func (p *Put) Digest() []byte {
	m := &p.Message
	if p.Mode == Check || (m.Topic == "" && m.Payload == nil) {
		return nil
	}
	var due int64
	if !m.DueAt.IsZero() {
		due = m.DueAt.UnixMicro()
	}
	head := make([]byte, 0, 128)
	head = binary.BigEndian.AppendUint64(head, uint64(len(m.Topic)))
	head = append(head, m.Topic...)
	head = binary.BigEndian.AppendUint64(head, uint64(due)) //nolint:gosec // the same bits
	h := sha256.New()
	h.Write(head)
	h.Write(m.Payload)
	return bytes.Clone(h.Sum(head[:0])[:digestSize])
}

// digestSize is enough to tell the contents apart that one key may ever have.
const digestSize = 8

// A PutResult says what taking a message in did. Err is nil,
// postroom.ErrInProgress, or postroom.ErrDead (Once and Guard only).
type PutResult struct {
	// Outcome is Accepted for a Check of a message that is not done, and for a
	// Once or Guard that is to run; Duplicate for each that is done.
	Outcome postroom.Outcome
	// Seq is the store's number of the message.
	Seq int64
	// State is the state after the call.
	State postroom.State
	// Mismatch: the key is known with another hash.
	Mismatch bool
	// Regrouped: the message named another group than the stored one, which
	// was kept.
	Regrouped bool
	// Lease is what Guard runs under.
	Lease postroom.Lease
	// Died is the error with which the expired lease of an earlier run ended as
	// Dead during this call; Lost says that such a lease was counted as lost.
	Died string
	Lost bool
	Err  error
}

// Known is what a store has of a message that a Put finds already there.
type Known struct {
	Seq int64
	// Work is the work row; nil when the message is done.
	Work *Work
	// Digest, Hash, HashAlg and Group are those of the stored message.
	Digest  []byte
	Hash    []byte
	HashAlg string
	Group   string
}

// Changes reports whether Decide would change anything that needs the work
// row's lock. A Put for which it is false is answered from a plain read.
func (p *Put) Changes(k Known, now time.Time) bool {
	_, c := p.Decide(k, now)
	return c.Fate != Untouched
}

// Arrive makes the work row of a new message with the given number, or its done
// row when the mode is Once. Owner, fence and lease are those of Guard.
func (p *Put) Arrive(seq int64, now time.Time) (PutResult, Change) {
	m := &p.Message
	w := Work{
		Seq: seq, Consumer: m.Consumer, Topic: m.Topic, Stage: postroom.StageSeen,
		Position: seq, ReadyPosition: seq, Revision: 1, LastSeen: now,
	}
	res := PutResult{Outcome: postroom.Accepted, Seq: seq}
	c := Change{Fate: Insert}
	switch p.Mode {
	case Check:
		w.Topic = ""
	case Queue:
		w.Group, w.Due, w.Expires = m.Group, m.DueAt, m.ExpiresAt
		if p.Dead != "" {
			p.bury(&w, &res)
			break
		}
		w.place(false, now)
		w.ReadyPosition = seq
	case Guard:
		w.guard(p, GuardToNone, now)
		res.Lease = w.Lease()
	case Once:
		w.Fence = 1
		c.Fate = InsertDone
		c.Done = w.done(now, p.Handler, 1)
	}
	c.Work = w
	res.State = c.State()
	return res, c
}

// Decide gives the result for a message that is already there and the change it
// needs. The store holds the lock of the work row when it applies a change.
//
// A change whose fate is Forget leaves the message unknown: the store applies it
// and takes the message in as a new one.
func (p *Put) Decide(k Known, now time.Time) (PutResult, Change) {
	m := &p.Message
	res := PutResult{Seq: k.Seq, Mismatch: p.mismatch(k)}
	adopt := len(m.Hash) > 0 && len(k.Hash) == 0
	if k.Work == nil {
		res.Outcome, res.State = postroom.Duplicate, postroom.StateDone
		return res, Change{AdoptHash: adopt}
	}
	w := *k.Work
	c := Change{Work: w}
	if w.expired(now) && p.Mode != Check {
		c = Reap(w, now, p.Rules)
		res.Lost, res.Died = c.Lost, c.Died
		if c.Fate == Forget {
			return res, c
		}
		w = c.Work
	}
	c.AdoptHash = adopt
	switch p.Mode {
	case Check:
		res.Outcome = postroom.Accepted
	case Queue:
		p.receive(k, &w, &res, &c, now)
	case Once, Guard:
		p.take(k, &w, &res, &c, now)
	}
	c.Work = w
	res.State = c.State()
	return res, c
}

// bury makes a message Dead that was never to be handled.
func (p *Put) bury(w *Work, res *PutResult) {
	w.Stage, w.LastError = postroom.StageDead, p.Dead
	res.Outcome, res.Died = postroom.Dead, p.Dead
}

// receive is the row "Receive" of the transition table.
func (p *Put) receive(k Known, w *Work, res *PutResult, c *Change, now time.Time) {
	m := &p.Message
	blank := k.Digest == nil
	keeps := p.Keep || p.Dead != ""
	same := !blank && !res.Mismatch && bytes.Equal(k.Digest, p.Digest())
	res.Regrouped = !blank && m.Group != "" && m.Group != k.Group
	switch {
	case w.Stage == postroom.StageDead:
		res.Outcome = postroom.Dead
	case w.Stage == postroom.StageSeen:
		res.Outcome = postroom.Accepted
	case same:
		res.Outcome = postroom.Duplicate
	case keeps && !blank && w.Topic != "":
		res.Outcome = postroom.Conflict
	default:
		res.Outcome = postroom.Replaced
	}
	// What is Accepted is stored, whatever a failed guarded run left behind.
	keep := same || (keeps && !blank && w.Topic != "" && w.Stage != postroom.StageSeen)
	if !keep {
		c.Fate, c.Content, c.Regroup = Update, true, blank
		if !blank {
			w.Revision++
		}
		w.Topic, w.Due, w.Expires = m.Topic, m.DueAt, m.ExpiresAt
	}
	// first: it was looked up or guarded so far, and is kept to be handled from
	// now on, even with the content that a guarded run left.
	first := func() {
		c.Fate, w.Position, w.Group = Update, NewPosition, k.Group
		if blank {
			w.Group = m.Group
		}
		if same {
			w.Due, w.Expires = m.DueAt, m.ExpiresAt
		}
	}
	switch {
	case p.Dead != "" && (w.Stage == postroom.StageSeen || w.Stage == postroom.StageIdle && !keep):
		first()
		p.bury(w, res)
	case w.Stage == postroom.StageSeen, w.Stage == postroom.StageIdle && !keep:
		first()
		w.place(false, now)
	case w.Stage == postroom.StageLeased && (w.Guard == GuardToNone || w.Guard == GuardToSeen):
		// A failure of the guarded run must not forget what its sender was told
		// is kept.
		first()
		w.Guard = GuardToWaiting
	case keep:
	case w.Stage.Waiting():
		w.place(w.head(), now)
	case w.Stage == postroom.StageDead && blank:
		w.Group, w.Position = m.Group, NewPosition
	}
}

// take is the row "Once / Guard" of the transition table.
func (p *Put) take(k Known, w *Work, res *PutResult, c *Change, now time.Time) {
	switch {
	case w.Stage == postroom.StageLeased:
		res.Err = postroom.ErrInProgress
		return
	case w.Stage == postroom.StageDead:
		res.Err = postroom.ErrDead
		return
	case w.Group != "" && w.Stage.Waiting() && w.Stage != postroom.StageIdle:
		res.Err = postroom.ErrInProgress
		return
	}
	res.Outcome = postroom.Accepted
	back := GuardToWaiting
	if w.Stage == postroom.StageSeen {
		back = GuardToSeen
	}
	if d := p.Digest(); d != nil && !p.Keep && (!bytes.Equal(d, k.Digest) || res.Mismatch) {
		c.Content, c.Regroup = true, k.Digest == nil
		w.Topic = p.Message.Topic
		if k.Digest != nil {
			w.Revision++
		}
	}
	if p.Mode == Guard {
		w.guard(p, back, now)
		res.Lease = w.Lease()
		c.Fate = Update
		return
	}
	w.Fence++
	c.Fate, c.Done = ToDone, w.done(now, p.Handler, w.Attempt+1)
}

func (p *Put) mismatch(k Known) bool {
	m := &p.Message
	return len(m.Hash) > 0 && len(k.Hash) > 0 && m.HashAlg == k.HashAlg && !bytes.Equal(m.Hash, k.Hash)
}

package storetest

import (
	"errors"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// A subject is the message that a cell of the transition table is about.
type subject struct {
	id string
	// changes make its content, the same with each delivery.
	changes []change
	// lease is the one it is or was last under.
	lease postroom.Lease
}

// A state is a column of the transition table.
type state struct {
	name, how string
	stands    string
	make      func(c *suite, s *subject)
}

var states = []state{
	{"none", "never heard of", "none", func(*suite, *subject) {}},
	{"seen", "looked up", "seen", func(c *suite, s *subject) { c.check(s.id) }},
	{"idle", "looked up and marked processing", "idle", func(c *suite, s *subject) {
		c.check(s.id)
		c.move(box.MarkProcessing, s.id)
	}},
	{"scheduled", "received, due in an hour", "scheduled", func(c *suite, s *subject) {
		s.changes = []change{dueAt(c.now().Add(time.Hour))}
		c.receive(s.id, s.changes...)
	}},
	{"ready", "received", "ready", func(c *suite, s *subject) { c.receive(s.id) }},
	{"suspect", "three leases lost", "suspect", func(c *suite, s *subject) {
		c.receive(s.id)
		for range box.SuspectAt {
			s.lease = c.claimOne(s.id).Lease
			c.Advance(leaseTime + time.Minute)
			c.reap()
		}
	}},
	{"parked", "claimed while its topic was paused", "parked", func(c *suite, s *subject) {
		c.must(ability[box.Pauser](c).Pause(c.ctx, c.consumer, "topic", "", ""), "pause")
		c.receive(s.id)
		s.lease = c.claimOne(s.id).Lease
		c.settle(s.lease, box.Park)
	}},
	{"deferred", "received in a group, due in an hour", "deferred", func(c *suite, s *subject) {
		s.changes = []change{group("g"), dueAt(c.now().Add(time.Hour))}
		c.receive(s.id, s.changes...)
	}},
	{"arrived", "received in a group", "arrived", func(c *suite, s *subject) {
		s.changes = []change{group("g")}
		c.receive(s.id, s.changes...)
	}},
	{"queued", "received in a group whose head is leased", "queued", func(c *suite, s *subject) {
		s.changes = []change{group("g")}
		c.receive("first", s.changes...)
		c.receive(s.id, s.changes...)
		c.claimOne("first")
	}},
	{"head", "received in a group, claimed and released", "ready", func(c *suite, s *subject) {
		s.changes = []change{group("g")}
		c.receive(s.id, s.changes...)
		s.lease = c.claimOne(s.id).Lease
		c.settle(s.lease, box.Release)
	}},
	{"leased", "received and claimed", "leased", leased},
	{"expired", "received, claimed, the lease expired", "leased", func(c *suite, s *subject) {
		leased(c, s)
		c.Advance(leaseTime + time.Minute)
	}},
	{"guarded", "guarded", "leased", guarded(false)},
	{"guarded expired", "guarded, the lease expired", "leased", func(c *suite, s *subject) {
		guarded(false)(c, s)
		c.Advance(leaseTime + time.Minute)
	}},
	{"releasing", "guarded with ReleaseOnError", "leased", guarded(true)},
	{"releasing expired", "guarded with ReleaseOnError, the lease expired", "leased", func(c *suite, s *subject) {
		guarded(true)(c, s)
		c.Advance(leaseTime + time.Minute)
	}},
	{"dead", "received, claimed and failed", "dead", func(c *suite, s *subject) {
		leased(c, s)
		c.settle(s.lease, box.Fail)
	}},
	{"done", "received, claimed and acked", "done", func(c *suite, s *subject) {
		leased(c, s)
		c.settle(s.lease, box.Ack)
	}},
}

func leased(c *suite, s *subject) {
	c.receive(s.id)
	s.lease = c.claimOne(s.id).Lease
}

func guarded(release bool) func(c *suite, s *subject) {
	return func(c *suite, s *subject) { s.lease = c.guard(s.id, release).Lease }
}

// The operations of the transition table. Each gives its answer in a word.

func doCheck(c *suite, s *subject) string   { return answer(c.check(s.id)) }
func doReceive(c *suite, s *subject) string { return answer(c.receive(s.id, s.changes...)) }
func doOnce(c *suite, s *subject) string    { return answer(c.once(s.id, s.changes...)) }
func doGuard(c *suite, s *subject) string   { return answer(c.guard(s.id, false, s.changes...)) }

func doReceiveOther(c *suite, s *subject) string {
	return answer(c.receive(s.id, append(s.changes, payload("another"))...))
}

func doReceiveKeep(c *suite, s *subject) string {
	p := c.putting(box.Queue, s.id, append(s.changes, payload("another"))...)
	p.Keep = true
	return answer(c.puts(p)[0])
}

func doReceiveMalformed(c *suite, s *subject) string {
	p := c.putting(box.Queue, s.id, append(s.changes, payload("another"))...)
	p.Dead = "no JSON"
	return answer(c.puts(p)[0])
}

func answer(res box.PutResult) string {
	if res.Err != nil {
		return failure(res.Err)
	}
	return res.Outcome.String()
}

func failure(err error) string {
	for name, known := range map[string]error{
		"ErrInProgress": postroom.ErrInProgress, "ErrDead": postroom.ErrDead, "ErrLeased": postroom.ErrLeased,
		"ErrNotFound": postroom.ErrNotFound, "ErrDone": postroom.ErrDone, "ErrPurged": postroom.ErrPurged,
	} {
		if errors.Is(err, known) {
			return name
		}
	}
	return err.Error()
}

func doClaim(c *suite, s *subject) string {
	for _, m := range c.claim(100) {
		if m.ID == s.id {
			return "claimed"
		}
	}
	return "nothing"
}

func doAck(c *suite, s *subject) string     { return end(c, s, box.Ack) }
func doAbandon(c *suite, s *subject) string { return end(c, s, box.Abandon) }
func doFail(c *suite, s *subject) string    { return end(c, s, box.Fail) }
func doRelease(c *suite, s *subject) string { return end(c, s, box.Release) }

func end(c *suite, s *subject, verb box.Verb) string {
	res := c.settleAll(box.Settlement{Lease: s.anyLease(c), Verb: verb, Error: "failed"})[0]
	if !res.Applied {
		return "ignored"
	}
	return "applied"
}

// anyLease gives the subject's lease, or a likely one if it never had any.
func (s *subject) anyLease(c *suite) postroom.Lease {
	if s.lease.Owner != "" {
		return s.lease
	}
	l := postroom.Lease{Seq: 1 << 40, Owner: worker, Fence: 1, Revision: 1}
	if rec, err := c.Store.Get(c.ctx, c.key(s.id)); err == nil {
		l.Seq = rec.Seq
	}
	return l
}

func doExtend(c *suite, s *subject) string {
	res, err := c.Store.Extend(c.ctx, []postroom.Lease{s.anyLease(c)}, leaseTime)
	c.must(err, "extend")
	if !res[0].Extended {
		return "ignored"
	}
	return "applied"
}

func doReap(c *suite, s *subject) string {
	for _, r := range c.reap() {
		if r.Key == c.key(s.id) {
			return "reaped"
		}
	}
	return "nothing"
}

func doMarkProcessing(c *suite, s *subject) string { return moved(c, s, box.MarkProcessing) }
func doMarkProcessed(c *suite, s *subject) string  { return moved(c, s, box.MarkProcessed) }
func doMarkDead(c *suite, s *subject) string       { return moved(c, s, box.MarkDead) }
func doRequeue(c *suite, s *subject) string        { return moved(c, s, box.Requeue) }
func doReplay(c *suite, s *subject) string         { return moved(c, s, box.Replay) }
func doDiscard(c *suite, s *subject) string        { return moved(c, s, box.Discard) }

func moved(c *suite, s *subject, action box.Action) string {
	res := c.move(action, s.id)
	switch {
	case res.Err != nil:
		return failure(res.Err)
	case res.Changed:
		return "changed"
	default:
		return "nothing"
	}
}

func doCleanup(c *suite, s *subject) string {
	c.Advance(2 * time.Hour)
	res, err := c.sweeper().Cleanup(c.ctx, box.CleanupRequest{Consumer: c.consumer, Payloads: time.Hour, Records: time.Hour})
	c.must(err, "cleanup")
	if res.Records > 0 {
		return "removed"
	}
	return "kept"
}

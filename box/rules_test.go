package box

import (
	"testing"
	"time"

	"github.com/postroom/postroom"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func received(mode Mode) *Put {
	return &Put{
		Mode: mode, Owner: "w", Lease: time.Minute,
		Message: postroom.Message{Consumer: "c", Source: "s", ID: "i", Topic: "t", Payload: []byte("x")},
	}
}

// guarded gives what is stored of a message under a guarded lease.
func guarded(mode GuardMode) Known {
	p := received(Guard)
	_, c := p.Arrive(1, noon)
	c.Work.Guard = mode
	return Known{Seq: 1, Work: &c.Work, Digest: p.Digest()}
}

// A sender that was answered must find its message kept, however the guarded run
// beside it ends.
func TestReceiveDuringAGuardSurvivesItsFailure(t *testing.T) {
	for _, mode := range []GuardMode{GuardToNone, GuardToSeen, GuardToWaiting} {
		res, c := received(Queue).Decide(guarded(mode), noon)
		if res.Outcome != postroom.Duplicate {
			t.Errorf("mode %d: outcome %v, want duplicate", mode, res.Outcome)
		}
		w := c.Work
		abandon := Settlement{Lease: w.Lease(), Verb: Abandon}
		if _, c = abandon.Decide(w, noon); c.Fate != Update || c.Work.Stage != postroom.StageScheduled {
			t.Errorf("mode %d: after the failure the fate is %d and the stage %v, want an update to scheduled", mode, c.Fate, c.Work.Stage)
		}
	}
}

func TestReceiveOfSeenContentIsHandled(t *testing.T) {
	k := guarded(GuardToSeen)
	abandon := Settlement{Lease: k.Work.Lease(), Verb: Abandon}
	_, c := abandon.Decide(*k.Work, noon)
	k.Work = &c.Work
	res, c := received(Queue).Decide(k, noon)
	if res.Outcome != postroom.Accepted || c.Fate != Update || c.Work.Stage != postroom.StageReady {
		t.Errorf("outcome %v, fate %d, stage %v; want accepted and an update to ready", res.Outcome, c.Fate, c.Work.Stage)
	}
}

// A guarded message is in no lane, so that giving it back must not make it a
// second head of its group.
func TestAGuardedMessageIsNoHead(t *testing.T) {
	k := guarded(GuardToNone)
	k.Group = "g"
	_, c := received(Queue).Decide(k, noon)
	if c.Work.Group != "g" || c.Work.Position != NewPosition {
		t.Errorf("group %q, position %d; want a new place in g", c.Work.Group, c.Work.Position)
	}
	abandon := Settlement{Lease: c.Work.Lease(), Verb: Abandon}
	_, c = abandon.Decide(c.Work, noon)
	if c.Work.Stage != postroom.StageDeferred {
		t.Errorf("the stage is %v, want deferred: it is not the head", c.Work.Stage)
	}
}

func TestPromote(t *testing.T) {
	for _, row := range []struct {
		from, to postroom.Stage
		lost     int
	}{
		{postroom.StageScheduled, postroom.StageReady, 0},
		{postroom.StageScheduled, postroom.StageSuspect, SuspectAt},
		{postroom.StageParked, postroom.StageReady, 0},
		{postroom.StageParked, postroom.StageSuspect, SuspectAt},
		{postroom.StageQueued, postroom.StageReady, 0},
		{postroom.StageDeferred, postroom.StageArrived, 0},
	} {
		c := Work{Stage: row.from, Lost: row.lost, Position: 1, ReadyPosition: 1}.Promote()
		if c.Fate != Update || c.Work.Stage != row.to {
			t.Errorf("%v with %d lost becomes %v, want %v", row.from, row.lost, c.Work.Stage, row.to)
		}
		arrives := row.to == postroom.StageArrived
		if (c.Work.Position == NewPosition) != arrives || (c.Work.ReadyPosition == NewPosition) == arrives {
			t.Errorf("%v to %v: position %d, ready position %d", row.from, row.to, c.Work.Position, c.Work.ReadyPosition)
		}
	}
}

func TestFellDue(t *testing.T) {
	w := Work{Stage: postroom.StageScheduled, Due: noon.Add(-time.Hour), Retry: noon}
	if !w.FellDue(noon) || w.FellDue(noon.Add(-time.Microsecond)) {
		t.Error("a message falls due at the later of due and retry, to the microsecond")
	}
	w.Stage = postroom.StageQueued
	if w.FellDue(noon) {
		t.Error("a queued message waits for its turn, not for its time")
	}
}

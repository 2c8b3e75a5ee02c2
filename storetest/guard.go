package storetest

import (
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

var guardCases = []entry{
	{"P2+TABLE_once_runs_once", func(c *suite) {
		res := c.once("a")
		equal(c, res.Outcome, postroom.Accepted, "the first is to run")
		equal(c, res.State, postroom.StateDone, "and is done with its commit")
		equal(c, c.once("a").Outcome, postroom.Duplicate, "the second is not")
		rec := c.get("a")
		equal(c, rec.Done.Handler, "handler", "the handler is on record")
		equal(c, rec.Done.Runs, 1, "it ran once")
		equal(c, rec.Done.Revision, 1, "the outcome names the revision")
		c.near(rec.Done.At, c.now(), "the outcome has its time")
		c.claimNone("it is done")
	}},
	{"P2_once_needs_no_content", func(c *suite) {
		equal(c, c.once("a", bare).Outcome, postroom.Accepted, "a key is enough")
		equal(c, c.once("a", bare).Outcome, postroom.Duplicate, "to be processed once")
	}},
	{"P3_once_takes_over_what_waits_and_raises_the_fence", func(c *suite) {
		c.receive("a")
		lease := c.claimOne("a").Lease
		c.settle(lease, box.Abandon, after(time.Hour))
		equal(c, c.once("a").Outcome, postroom.Accepted, "it takes over what waits, even for a retry")
		c.ignored(lease, box.Ack, "the fence has gone on")
		rec := c.get("a")
		equal(c, rec.Done.Runs, 2, "the earlier run counts")
		c.is(rec.Done.Fence > lease.Fence, "the fence is %d after %d: taking over increases it", rec.Done.Fence, lease.Fence)
	}},
	{"P3_replay_continues_the_fence", func(c *suite) {
		c.receive("a")
		old := c.claimOne("a").Lease
		c.settle(old, box.Ack)
		c.is(c.move(box.Replay, "a").Changed, "a done message can be replayed")
		m := c.claimOne("a")
		c.is(m.Lease.Fence > old.Fence, "fence %d after %d: a lease from before must stay stale", m.Lease.Fence, old.Fence)
		equal(c, m.Attempt, 0, "a replay starts afresh")
		c.ignored(old, box.Ack, "it belongs to the first life")
		c.settle(m.Lease, box.Ack)
	}},
	{"TABLE_guard_leases_and_ack_is_done", func(c *suite) {
		res := c.guard("a", false)
		equal(c, res.Outcome, postroom.Accepted, "it is to run")
		equal(c, res.State, postroom.StateProcessing, "a mark is never done before the run")
		equal(c, res.Lease.Owner, worker, "the lease is the caller's")
		c.near(res.Lease.Until, c.now().Add(leaseTime), "and has its time")
		rec := c.get("a")
		equal(c, rec.Guard, box.GuardKeep, "the mode is stored with the mark")
		equal(c, rec.Lease.Fence, res.Lease.Fence, "the record shows the lease")
		c.settle(res.Lease, box.Ack)
		equal(c, c.guard("a", false).Outcome, postroom.Duplicate, "it was processed")
	}},
	{"NEVER-22_a_retry_during_a_guarded_run_is_told_in_progress", func(c *suite) {
		first := c.guard("a", true)
		c.fails(c.guard("a", true).Err, postroom.ErrInProgress, "the first delivery is running")
		c.settle(first.Lease, box.Abandon, withError("failed"))
		equal(c, c.guard("a", true).Outcome, postroom.Accepted, "the sender tries again, and nothing is lost")
	}},
	{"TABLE_a_guarded_failure_is_dead_with_its_error", func(c *suite) {
		res := c.guard("a", false)
		equal(c, c.settle(res.Lease, box.Abandon, withError("no mail today")).State, postroom.StateDead, "without ReleaseOnError a failure is dead")
		equal(c, c.get("a").LastError, "no mail today", "with the error")
		c.fails(c.guard("a", false).Err, postroom.ErrDead, "it waits for an operator")
	}},
	{"TABLE_release_on_error_returns_to_what_it_was", func(c *suite) {
		c.settle(c.guard("none", true).Lease, box.Abandon)
		c.expect("none", "none", "it was unknown before")
		c.check("seen")
		c.settle(c.guard("seen", true).Lease, box.Abandon)
		c.expect("seen", "seen", "it had been looked up before")
		c.receive("waiting")
		c.settle(c.guard("waiting", true).Lease, box.Abandon, withError("failed"), after(time.Hour))
		c.expect("waiting", "scheduled", "it had been received before")
		rec := c.get("waiting")
		equal(c, rec.Attempt, 1, "the run counts")
		equal(c, rec.LastError, "failed", "with its error")
	}},
	{"TABLE_an_expired_guard_is_an_unknown_outcome", func(c *suite) {
		c.guard("a", false)
		c.Advance(leaseTime + time.Minute)
		got := c.reap()
		if len(got) != 1 {
			c.Fatalf("reaped %v, want the guarded message", got)
		}
		equal(c, got[0].State, postroom.StateDead, "whether its effect happened is not known")
		equal(c, got[0].Error, box.UnknownOutcome, "and it says so")
		equal(c, c.get("a").LastError, box.UnknownOutcome, "and it says so")
		equal(c, c.get("a").Lease, postroom.Lease{}, "nobody has it")
	}},
	{"TABLE+P3_a_late_success_of_a_guard_still_counts", func(c *suite) {
		res := c.guard("a", false)
		c.Advance(leaseTime + time.Minute)
		c.reap()
		stolen := res.Lease
		stolen.Owner = other
		c.ignored(stolen, box.Ack, "only the run itself knows its outcome")
		c.ignored(res.Lease, box.Release, "only an outcome is of use")
		equal(c, c.settle(res.Lease, box.Ack).State, postroom.StateDone, "the outcome is known now")
	}},
	{"TABLE+P3_a_late_success_after_a_requeue_is_stale", func(c *suite) {
		res := c.guard("a", false)
		c.Advance(leaseTime + time.Minute)
		c.reap()
		c.move(box.Requeue, "a")
		c.ignored(res.Lease, box.Ack, "an operator has decided")
		c.claimOne("a")
	}},
	{"TABLE_an_expired_guard_is_returned_under_release_on_error", func(c *suite) {
		c.guard("none", true)
		c.check("seen")
		c.guard("seen", true)
		c.receive("waiting")
		c.guard("waiting", true)
		c.Advance(leaseTime + time.Minute)
		equal(c, len(c.reap()), 3, "three leases have expired")
		c.expect("none", "none", "it was unknown before")
		c.expect("seen", "seen", "it had been looked up before")
		c.expect("waiting", "scheduled", "it had been received before, and its run counts")
	}},
	{"NEVER-23+P1_a_message_received_during_a_guard_is_not_forgotten", func(c *suite) {
		for _, seen := range []bool{false, true} {
			g := c.as("guard-" + postroom.NewID())
			if seen {
				g.check("a")
			}
			res := g.guard("a", true)
			equal(g, g.receive("a").Outcome, postroom.Duplicate, "its sender is told that it is kept")
			g.settle(res.Lease, box.Abandon, after(time.Second))
			g.Advance(time.Minute)
			g.claimOne("a")
		}
	}},
	{"NEVER-23+P1_a_message_received_after_a_returned_guard_is_handled", func(c *suite) {
		c.check("a")
		c.settle(c.guard("a", true).Lease, box.Abandon)
		c.expect("a", "seen", "it had been looked up before")
		equal(c, c.receive("a").Outcome, postroom.Accepted, "it is received for the first time")
		c.claimOne("a")
	}},
	{"TABLE_guard_takes_over_what_waits", func(c *suite) {
		c.receive("a")
		old := c.claimOne("a").Lease
		c.settle(old, box.Release)
		res := c.guard("a", false)
		c.is(res.Lease.Fence > old.Fence, "fence %d after %d: taking over increases it", res.Lease.Fence, old.Fence)
		c.claimNone("the guarded run has it")
		c.settle(res.Lease, box.Ack)
	}},
	{"TABLE_marks_of_an_unknown_message_do_nothing", func(c *suite) {
		for _, action := range []box.Action{box.MarkProcessing, box.MarkProcessed, box.MarkDead} {
			res := c.move(action, "a")
			c.is(res.Err == nil && !res.Changed, "%v of an unknown message: %+v", action, res)
			c.expect("a", "none", "a mark makes no message")
		}
	}},
	{"TABLE_a_mark_makes_a_message_with_a_topic_claimable", func(c *suite) {
		c.check("a")
		c.settle(c.guard("a", true).Lease, box.Abandon)
		c.move(box.MarkProcessing, "a")
		c.claimOne("a")
	}},
}

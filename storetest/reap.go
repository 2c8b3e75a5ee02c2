package storetest

import (
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// lose lets the leases on all that is ready, or on one suspect, expire.
func (c *suite) lose(suspect bool, rules box.ReapRules) []box.Reaped {
	c.Helper()
	req := box.ClaimRequest{Limit: 100, Suspect: suspect}
	if len(c.claimWith(req)) == 0 {
		c.Fatalf("nothing to claim (suspect: %v)", suspect)
	}
	c.Advance(leaseTime + time.Minute)
	res, err := c.sweeper().Reap(c.ctx, box.ReapRequest{Consumer: c.consumer, ReapRules: rules})
	c.must(err, "reap")
	return res
}

var reapCases = []entry{
	{"IBX-068_only_expired_leases_are_reaped", func(c *suite) {
		c.receiveAll("a", "b")
		c.claimWith(box.ClaimRequest{Limit: 1, Lease: time.Minute})
		c.claimWith(box.ClaimRequest{Limit: 1, Lease: time.Hour})
		equal(c, len(c.reap()), 0, "no lease has expired")
		c.Advance(2 * time.Minute)
		got := c.reap()
		if len(got) != 1 {
			c.Fatalf("reaped %v, want only a", got)
		}
		equal(c, got[0], box.Reaped{Key: c.key("a"), Topic: "topic", State: postroom.StateProcessing, Lost: 1}, "the result tells what became of it")
		c.expect("a", "ready", "its lease had expired")
		c.expect("b", "leased", "its lease had not")
		equal(c, len(c.reap()), 0, "a reaped lease is gone")
	}},
	{"IBX-069+IBX-070_a_reaped_message_is_ready_at_no_attempt", func(c *suite) {
		c.receive("a")
		c.lose(false, box.ReapRules{})
		rec := c.get("a")
		equal(c, rec.Lease, postroom.Lease{}, "nobody has it")
		equal(c, rec.Lost, 1, "the lost lease is counted")
		equal(c, rec.Attempt, 0, "and is no attempt")
		c.claimOne("a")
	}},
	{"IBX-070_reaping_respects_a_new_due_time", func(c *suite) {
		c.receive("a")
		c.claimOne("a")
		c.receive("a", dueAt(c.now().Add(2*time.Hour)))
		c.Advance(leaseTime + time.Minute)
		c.reap()
		c.expect("a", "scheduled", "it was made due later during its run")
	}},
	{"IBX-071_done_and_dead_are_not_reaped", func(c *suite) {
		c.receiveAll("done", "dead")
		for _, m := range c.claim(10) {
			c.settle(m.Lease, map[string]box.Verb{"done": box.Ack, "dead": box.Fail}[m.ID])
		}
		c.Advance(24 * time.Hour)
		equal(c, len(c.reap()), 0, "their leases have ended")
		c.expect("done", "done", "it was acked")
		c.expect("dead", "dead", "it failed")
	}},
	{"IBX-068_reaping_keeps_to_the_limit", func(c *suite) {
		c.receiveAll("a", "b", "c", "d", "e")
		c.claim(10)
		c.Advance(leaseTime + time.Minute)
		for _, want := range []int{2, 2, 1, 0} {
			got, err := c.sweeper().Reap(c.ctx, box.ReapRequest{Consumer: c.consumer, Limit: 2})
			c.must(err, "reap")
			equal(c, len(got), want, "two at most with each call")
		}
	}},
	{"IBX-068_consumers_are_reaped_apart", func(c *suite) {
		second := c.as(c.consumer + "-2")
		c.receive("a")
		second.receive("a")
		c.claim(1)
		second.claim(1)
		c.Advance(leaseTime + time.Minute)
		equal(c, len(c.reap()), 1, "only the consumer's own")
		second.expect("a", "leased", "nobody reaped for the second consumer")
	}},
	{"NEVER-09_three_lost_leases_make_a_suspect", func(c *suite) {
		c.receive("a")
		for i := 1; i <= box.SuspectAt; i++ {
			got := c.lose(false, box.ReapRules{})
			equal(c, got[0].Lost, i, "lost leases in a row are counted")
		}
		c.expect("a", "suspect", "three leases were lost")
		c.claimNone("a suspect is not claimed among others")
		got := c.claimWith(box.ClaimRequest{Limit: 10, Suspect: true})
		equal(c, ids(got), []string{"a"}, "it is claimed alone")
	}},
	{"NEVER-09_suspects_are_claimed_one_at_a_time", func(c *suite) {
		c.receiveAll("a", "b")
		for range box.SuspectAt {
			c.lose(false, box.ReapRules{})
		}
		c.receive("innocent")
		equal(c, len(c.claimWith(box.ClaimRequest{Limit: 10, Suspect: true})), 1, "one, whatever the limit")
		equal(c, len(c.claimWith(box.ClaimRequest{Limit: 10, Suspect: true})), 1, "the other one")
		c.claimOne("innocent")
	}},
	{"NEVER-09_five_lost_leases_are_dead", func(c *suite) {
		c.receive("a")
		for i := range box.MaxLost {
			got := c.lose(i >= box.SuspectAt, box.ReapRules{})
			if i == box.MaxLost-1 {
				equal(c, got[0].State, postroom.StateDead, "its process died too often")
				equal(c, got[0].Error, box.ProcessDied, "the result says why")
			}
		}
		rec := c.get("a")
		equal(c, rec.State, postroom.StateDead, "its process died too often")
		equal(c, rec.LastError, box.ProcessDied, "the record says why")
		equal(c, rec.Attempt, 0, "no run came back")
	}},
	{"NEVER-09_a_store_that_never_gives_up_keeps_a_suspect", func(c *suite) {
		c.receive("a")
		for i := range box.MaxLost + 2 {
			c.lose(i >= box.SuspectAt, box.ReapRules{NeverDead: true})
		}
		c.expect("a", "suspect", "it is held, by option")
	}},
	{"NEVER-09_a_run_that_returns_clears_suspicion", func(c *suite) {
		c.receive("a")
		for range box.SuspectAt {
			c.lose(false, box.ReapRules{})
		}
		m := c.claimWith(box.ClaimRequest{Limit: 1, Suspect: true})[0]
		c.settle(m.Lease, box.Abandon, after(time.Second))
		equal(c, c.get("a").Lost, 0, "a run that returns resets the count")
		c.Advance(time.Minute)
		c.claimOne("a")
	}},
	{"NEVER-09_a_suspect_released_with_a_delay_stays_one", func(c *suite) {
		c.receive("a")
		for range box.SuspectAt {
			c.lose(false, box.ReapRules{})
		}
		m := c.claimWith(box.ClaimRequest{Limit: 1, Suspect: true})[0]
		c.settle(m.Lease, box.Release, after(time.Hour))
		c.expect("a", "scheduled", "the release holds it back")
		c.Advance(2 * time.Hour)
		c.claimNone("it did not run, so it is a suspect still")
		c.expect("a", "suspect", "it did not run, so it is a suspect still")
	}},
	{"NEVER-09+LANE_a_head_whose_process_died_lets_go_or_holds", func(c *suite) {
		for _, holds := range []bool{false, true} {
			g := c.as("reap-" + postroom.NewID())
			g.inGroup("g", "a", "b")
			for i := range box.MaxLost {
				g.lose(i >= box.SuspectAt, box.ReapRules{Hold: holds})
			}
			g.expect("a", "dead", "its process died too often")
			if holds {
				g.claimNone("the group waits for its head, by option")
			} else {
				g.claimOne("b")
			}
		}
	}},
	{"NEVER-09_put_and_move_settle_an_expired_lease_and_say_so", func(c *suite) {
		c.receiveAll("a", "b")
		c.claim(10)
		c.Advance(leaseTime + time.Minute)
		c.is(c.receive("a").Lost, "put says that a lease was lost")
		c.is(c.move(box.MarkProcessing, "b").Lost, "move says that a lease was lost")
		equal(c, c.get("a").Lost, 1, "it is counted as reap would")
		equal(c, c.get("b").Lost, 1, "it is counted as reap would")
		c.guard("g", false)
		c.Advance(leaseTime + time.Minute)
		equal(c, c.once("g").Died, box.UnknownOutcome, "put says what a guarded message died with")
	}},
}

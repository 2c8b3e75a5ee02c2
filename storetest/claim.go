package storetest

import (
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

var claimCases = []entry{
	{"IBX-030+IBX-039_claims_keep_to_the_limit", func(c *suite) {
		c.receiveAll("a", "b", "c", "d", "e")
		equal(c, len(c.claim(2)), 2, "two were asked for")
		equal(c, len(c.claim(2)), 2, "two were asked for")
		equal(c, len(c.claim(2)), 1, "one was left")
	}},
	{"IBX-030_claims_go_in_order_of_arrival", func(c *suite) {
		c.receive("z")
		c.receive("m")
		c.receive("a")
		for _, id := range []string{"z", "m", "a"} {
			equal(c, ids(c.claim(1)), []string{id}, "who came first is claimed first")
		}
	}},
	{"IBX-030_a_batch_arrives_in_its_own_order", func(c *suite) {
		c.receiveAll("z", "m", "a", "q")
		for _, id := range []string{"z", "m", "a", "q"} {
			equal(c, ids(c.claim(1)), []string{id}, "the order in the batch is the order of arrival")
		}
	}},
	{"IBX-031+IBX-038_only_processing_is_claimed", func(c *suite) {
		c.check("seen")
		c.once("done")
		c.receive("dead")
		c.move(box.MarkDead, "dead")
		c.check("idle")
		c.move(box.MarkProcessing, "idle")
		c.guard("guarded", false)
		c.claimNone("seen, done, dead, without a topic, guarded: none is ready")
	}},
	{"IBX-033+IBX-106_a_leased_message_is_not_claimed", func(c *suite) {
		c.receive("a")
		c.claimOne("a")
		equal(c, len(c.claimWith(box.ClaimRequest{Owner: other, Limit: 10})), 0, "another worker has it")
		c.claimNone("not even its holder gets it twice")
	}},
	{"IBX-033_an_expired_lease_is_claimable_once_reaped", func(c *suite) {
		c.receive("a")
		first := c.claimOne("a")
		c.Advance(leaseTime + time.Minute)
		c.reap()
		got := c.claimWith(box.ClaimRequest{Owner: other, Limit: 10})
		equal(c, ids(got), []string{"a"}, "its lease has expired")
		c.is(got[0].Lease.Fence > first.Lease.Fence, "each claim increases the fence")
	}},
	{"IBX-034+IBX-035_the_lease_has_owner_end_and_fence", func(c *suite) {
		res := c.receive("a")
		m := c.claimOne("a")
		equal(c, m.Lease.Owner, worker, "the lease is the claimer's")
		equal(c, m.Lease.Seq, res.Seq, "the lease names the message")
		c.is(m.Lease.Fence > 0, "the fence is %d", m.Lease.Fence)
		c.near(m.Lease.Until, c.now().Add(leaseTime), "the lease ends after its time by the store's clock")
		rec := c.get("a")
		equal(c, rec.Stage, postroom.StageLeased, "it is leased")
		equal(c, rec.Lease, m.Lease, "the record shows the same lease")
	}},
	{"IBX-036_claims_give_whole_messages", func(c *suite) {
		c.receive("a")
		m := c.claimOne("a")
		equal(c, m.Key(), c.key("a"), "the key is delivered")
		equal(c, m.Topic, "topic", "the topic is delivered")
		equal(c, string(m.Payload), "payload of a", "the payload is delivered")
		equal(c, m.Attempt, 0, "the attempt is delivered")
		equal(c, m.Revision, 1, "the revision is delivered")
		c.is(!m.FirstSeen.IsZero() && !m.LastSeen.IsZero(), "times are delivered")
	}},
	{"IBX-037_nothing_ready_is_no_error", func(c *suite) {
		c.claimNone("the consumer is unknown")
		equal(c, len(c.claimWith(box.ClaimRequest{Limit: 1, Suspect: true})), 0, "there is no suspect either")
		equal(c, len(c.claimWith(box.ClaimRequest{Limit: 1, ReadyOnly: true})), 0, "nor anything ready")
	}},
	{"IBX-042+IBX-052_backoff_is_2_4_8_to_60_seconds", func(c *suite) {
		c.receive("a")
		for i, seconds := range []int{2, 4, 8, 16, 32, 60, 60, 60} {
			m := c.claimOne("a")
			equal(c, m.Attempt, i, "each failed run counts")
			c.settle(m.Lease, box.Abandon)
			rec := c.get("a")
			wait := time.Duration(seconds) * time.Second
			if got := rec.NextAt.Sub(c.now()); got > wait || got < wait-5*time.Second {
				c.Errorf("attempt %d waits for %v, want %v: the smaller of 2^attempt and 60 seconds", i+1, got, wait)
			}
			if i >= 2 {
				c.claimNone("the backoff holds it back")
			}
			c.Advance(wait + time.Second)
		}
	}},
	{"IBX-032_what_falls_due_is_claimed_in_order_of_its_time", func(c *suite) {
		now := c.now()
		c.receive("late", dueAt(now.Add(3*time.Hour)))
		c.receive("early", dueAt(now.Add(time.Hour)))
		c.receive("middle", dueAt(now.Add(2*time.Hour)))
		c.Advance(4 * time.Hour)
		for _, id := range []string{"early", "middle", "late"} {
			equal(c, ids(c.claim(1)), []string{id}, "who fell due first is claimed first")
		}
	}},
	{"IBX-030_ready_only_leaves_what_fell_due", func(c *suite) {
		c.receive("later", dueAt(c.now().Add(time.Hour)))
		c.receive("now")
		c.Advance(2 * time.Hour)
		equal(c, ids(c.claimWith(box.ClaimRequest{Limit: 10, ReadyOnly: true})), []string{"now"}, "only what is ready already")
		equal(c, ids(c.claim(10)), []string{"later"}, "a full claim looks at what fell due")
	}},
	{"EXPIRY_expired_messages_are_dead_and_never_run", func(c *suite) {
		now := c.now()
		c.receive("short", expiresAt(now.Add(time.Hour)))
		c.receive("long", expiresAt(now.Add(5*time.Hour)))
		c.Advance(2 * time.Hour)
		equal(c, ids(c.claim(10)), []string{"long"}, "the other had expired")
		rec := c.get("short")
		equal(c, rec.State, postroom.StateDead, "expired and unrun is dead")
		equal(c, rec.LastError, box.Expired, "and says why")
		equal(c, rec.Attempt, 0, "it never ran")
		equal(c, rec.Lease, postroom.Lease{}, "nobody has it")
	}},
	{"EXPIRY_whoever_claims_is_told_what_expired", func(c *suite) {
		c.receive("a", expiresAt(c.now().Add(time.Hour)))
		c.Advance(2 * time.Hour)
		var told []string
		c.claimWith(box.ClaimRequest{Limit: 10, Expired: func(m *postroom.Message) { told = append(told, m.ID) }})
		equal(c, told, []string{"a"}, "a death must not go unnoticed")
	}},
	{"EXPIRY+LANE_an_expired_head_holds_its_group_if_asked", func(c *suite) {
		c.receive("a", group("g"), expiresAt(c.now().Add(time.Hour)))
		c.receive("b", group("g"))
		c.Advance(2 * time.Hour)
		c.claimWith(box.ClaimRequest{Limit: 10, Hold: true})
		equal(c, c.stands("a"), "dead", "its time is over")
		c.claimNone("the group waits for its dead head")
	}},
	{"EXPIRY_an_expired_message_can_be_requeued", func(c *suite) {
		c.receive("a", expiresAt(c.now().Add(time.Hour)))
		c.Advance(2 * time.Hour)
		c.claimNone("it has expired")
		c.is(c.move(box.Requeue, "a").Changed, "an operator may run what had expired")
		c.claimOne("a")
	}},
	{"IBX-105_consumers_are_claimed_apart", func(c *suite) {
		second := c.as(c.consumer + "-2")
		c.receiveAll("a", "b")
		second.receiveAll("a", "b", "c")
		equal(c, len(c.claim(10)), 2, "the first consumer has two")
		equal(c, len(second.claim(10)), 3, "the second has three")
	}},
}

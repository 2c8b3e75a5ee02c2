package storetest

import (
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// inGroup receives messages of one group, one after another.
func (c *suite) inGroup(name string, ids ...string) {
	c.Helper()
	for _, id := range ids {
		equal(c, c.receive(id, group(name)).Outcome, postroom.Accepted, "message "+id+" is new")
	}
}

// runsInOrder claims and acks what is ready, which must be these, one at a time.
func (c *suite) runsInOrder(ids ...string) {
	c.Helper()
	for _, id := range ids {
		c.settle(c.claimOne(id).Lease, box.Ack)
	}
	c.claimNone("all have run")
}

// exchangeAcked acknowledges messages and claims.
func (c *suite) exchangeAcked(messages []*postroom.Message, grouped func(*postroom.Message) bool) []*postroom.Message {
	c.Helper()
	ends := make([]box.Settlement, len(messages))
	for i, m := range messages {
		ends[i] = box.Settlement{Lease: m.Lease, Verb: box.Ack, Grouped: grouped(m)}
	}
	settled, claimed := c.exchange(ends, 10)
	for i := range settled {
		c.is(settled[i].Applied, "message %s was not acknowledged", messages[i].ID)
		equal(c, c.get(messages[i].ID).State, postroom.StateDone, "it is acknowledged")
	}
	return claimed
}

var laneCases = []entry{
	{"LANE+IBX-106_one_at_a_time_in_order_of_arrival", func(c *suite) {
		c.inGroup("g", "z", "m", "a")
		c.runsInOrder("z", "m", "a")
	}},
	{"LANE_a_batch_keeps_its_own_order", func(c *suite) {
		c.puts(c.putting(box.Queue, "z", group("g")), c.putting(box.Queue, "m", group("g")), c.putting(box.Queue, "a", group("g")))
		c.runsInOrder("z", "m", "a")
	}},
	{"LANE_late_arrivals_go_behind", func(c *suite) {
		c.inGroup("g", "a")
		m := c.claimOne("a")
		c.inGroup("g", "b")
		c.claimNone("the head is running")
		c.expect("b", "queued", "it stands behind the head")
		c.inGroup("g", "c")
		c.settle(m.Lease, box.Ack)
		c.runsInOrder("b", "c")
		c.inGroup("g", "d")
		c.runsInOrder("d")
	}},
	{"LANE_groups_do_not_wait_for_each_other", func(c *suite) {
		c.inGroup("g", "g1", "g2")
		c.inGroup("h", "h1", "h2")
		c.receive("single")
		got := c.claim(10)
		equal(c, ids(got), []string{"single", "g1", "h1"}, "one of each group, and what has no group; a head is ready when it is made the head")
		for _, m := range got {
			if m.ID == "h1" {
				c.settle(m.Lease, box.Ack)
			}
		}
		c.claimOne("h2")
	}},
	{"LANE_groups_of_two_consumers_are_two", func(c *suite) {
		second := c.as(c.consumer + "-2")
		c.inGroup("g", "a", "b")
		second.inGroup("g", "a", "b")
		c.claimOne("a")
		second.runsInOrder("a", "b")
		c.expect("b", "queued", "its own head is running")
	}},
	{"LANE_settling_fills_the_lane_at_once", func(c *suite) {
		c.inGroup("g", "a", "b", "c")
		c.settle(c.claimOne("a").Lease, box.Ack)
		c.expect("b", "ready", "settle fills the lane that it vacated")
		got := c.claimWith(box.ClaimRequest{Limit: 10, ReadyOnly: true})
		equal(c, ids(got), []string{"b"}, "so that a worker sees it without looking at lanes")
		c.settle(got[0].Lease, box.Fail)
		c.expect("c", "ready", "a head that dies lets the next one go")
	}},
	{"LANE_an_exchange_fills_the_lanes_that_it_vacates", func(c *suite) {
		hints := map[string]func(*postroom.Message) bool{
			"a hint that is right": func(m *postroom.Message) bool { return m.Group != "" },
			"no hint":              func(*postroom.Message) bool { return false },
			"a hint that is wrong": func(m *postroom.Message) bool { return m.Group == "" },
		}
		for why, hint := range hints {
			c := c.as("c-" + postroom.NewID())
			c.inGroup("g", "a", "b", "c")
			c.inGroup("h", "x")
			c.receive("single")
			got := c.claim(10)
			equal(c, len(got), 3, "two heads, and what has no group")
			for _, want := range []string{"b", "c"} {
				got = c.exchangeAcked(got, hint)
				if len(got) == 0 {
					got = c.claimWith(box.ClaimRequest{Limit: 10, ReadyOnly: true})
				}
				equal(c, ids(got), []string{want}, "the next of its group, with "+why)
			}
			equal(c, len(c.exchangeAcked(got, hint)), 0, "all have run, with "+why)
			c.inGroup("g", "d")
			c.inGroup("h", "y")
			equal(c, len(c.claim(10)), 2, "lanes that were given up are made anew, with "+why)
		}
	}},
	{"LANE_ready_only_does_not_sort", func(c *suite) {
		c.inGroup("g", "a")
		equal(c, len(c.claimWith(box.ClaimRequest{Limit: 10, ReadyOnly: true})), 0, "nobody has sorted it into its lane")
		c.expect("a", "arrived", "nobody has sorted it into its lane")
		c.claimOne("a")
	}},
	{"LANE_a_head_keeps_its_lane_while_it_waits_for_a_retry", func(c *suite) {
		c.inGroup("g", "a", "b")
		c.settle(c.claimOne("a").Lease, box.Abandon, after(time.Hour))
		c.expect("a", "scheduled", "it waits for its retry")
		c.claimNone("the group waits with it")
		c.Advance(2 * time.Hour)
		c.runsInOrder("a", "b")
	}},
	{"LANE_a_released_head_keeps_its_lane", func(c *suite) {
		c.inGroup("g", "a", "b")
		c.settle(c.claimOne("a").Lease, box.Release)
		c.runsInOrder("a", "b")
	}},
	{"LANE_a_reaped_head_keeps_its_lane", func(c *suite) {
		c.inGroup("g", "a", "b")
		c.claimOne("a")
		c.Advance(leaseTime + time.Minute)
		c.claimNone("an expired lease is ended by reap alone")
		c.reap()
		c.runsInOrder("a", "b")
	}},
	{"LANE_a_parked_head_keeps_its_lane", func(c *suite) {
		p := ability[box.Pauser](c)
		c.must(p.Pause(c.ctx, c.consumer, "topic", "", ""), "pause")
		c.inGroup("g", "a", "b")
		c.settle(c.claimOne("a").Lease, box.Park)
		c.claimNone("the group waits for the topic of its head")
		c.must(p.Resume(c.ctx, c.consumer, "topic", ""), "resume")
		c.runsInOrder("a", "b")
	}},
	{"LANE_a_dead_head_lets_the_next_go", func(c *suite) {
		c.inGroup("g", "a", "b")
		c.settle(c.claimOne("a").Lease, box.Fail)
		c.runsInOrder("b")
		c.expect("a", "dead", "it waits for an operator")
	}},
	{"LANE_a_dead_head_holds_its_group_by_option", func(c *suite) {
		c.inGroup("g", "a", "b")
		c.settle(c.claimOne("a").Lease, box.Fail, hold)
		c.expect("a", "dead", "it failed for good")
		c.claimNone("its group waits for an operator")
		c.expect("b", "queued", "and can be seen to")
		c.is(c.move(box.Requeue, "a").Changed, "a held head can be requeued")
		c.expect("a", "ready", "a head still held is ready at once")
		c.runsInOrder("a", "b")
	}},
	{"LANE_a_held_head_can_be_discarded", func(c *suite) {
		c.inGroup("g", "a", "b")
		c.settle(c.claimOne("a").Lease, box.Fail, hold)
		c.is(c.move(box.Discard, "a").Changed, "a held head can be discarded")
		c.runsInOrder("b")
	}},
	{"LANE_a_held_head_can_be_marked_processed", func(c *suite) {
		c.inGroup("g", "a", "b")
		c.settle(c.claimOne("a").Lease, box.Fail, hold)
		c.move(box.MarkProcessed, "a")
		c.runsInOrder("b")
	}},
	{"LANE_a_held_head_can_be_requeued_with_a_delay", func(c *suite) {
		c.inGroup("g", "a", "b")
		c.settle(c.claimOne("a").Lease, box.Fail, hold)
		c.move(box.Requeue, "a", func(m *box.Move) { m.Delay = time.Hour })
		c.expect("a", "scheduled", "the head waits")
		c.claimNone("and its group with it")
		c.Advance(2 * time.Hour)
		c.runsInOrder("a", "b")
	}},
	{"LANE_moving_a_waiting_head_away_lets_the_next_go", func(c *suite) {
		for _, action := range []box.Action{box.MarkProcessed, box.MarkDead, box.Discard} {
			g := c.as("lane-" + postroom.NewID())
			g.inGroup("g", "a", "b")
			g.settle(g.claimOne("a").Lease, box.Abandon, after(time.Hour))
			g.is(g.move(action, "a").Changed, "%v of a waiting head", action)
			g.runsInOrder("b")
		}
	}},
	{"LANE_moving_a_queued_message_away_leaves_the_head", func(c *suite) {
		c.inGroup("g", "a", "b", "c")
		m := c.claimOne("a")
		c.move(box.Discard, "b")
		c.claimNone("the head is running")
		c.settle(m.Lease, box.Ack)
		c.runsInOrder("c")
	}},
	{"LANE_a_requeued_message_is_next", func(c *suite) {
		c.inGroup("g", "a", "b", "c")
		c.settle(c.claimOne("a").Lease, box.Fail)
		m := c.claimOne("b")
		c.move(box.Requeue, "a")
		c.claimNone("the head is running")
		c.settle(m.Lease, box.Release)
		c.runsInOrder("b", "a", "c")
	}},
	{"LANE_a_replayed_message_goes_to_the_end", func(c *suite) {
		c.inGroup("g", "a", "b")
		c.settle(c.claimOne("a").Lease, box.Ack)
		c.move(box.Replay, "a")
		c.expect("a", "arrived", "it enters its lane anew")
		c.runsInOrder("b", "a")
	}},
	{"LANE_a_message_that_was_seen_enters_when_received", func(c *suite) {
		c.check("b")
		c.inGroup("g", "a")
		c.receive("b", group("g"))
		c.runsInOrder("a", "b")
	}},
	{"LANE_a_deferred_message_enters_when_due", func(c *suite) {
		c.receive("later", group("g"), dueAt(c.now().Add(time.Hour)))
		c.inGroup("g", "now")
		c.runsInOrder("now")
		c.inGroup("g", "soon")
		c.Advance(2 * time.Hour)
		c.runsInOrder("soon", "later")
	}},
	{"LANE_deferred_messages_enter_in_order_of_their_time", func(c *suite) {
		now := c.now()
		c.receive("second", group("g"), dueAt(now.Add(2*time.Hour)))
		c.receive("first", group("g"), dueAt(now.Add(time.Hour)))
		c.Advance(3 * time.Hour)
		c.runsInOrder("first", "second")
	}},
	{"LANE_replacing_does_not_change_the_group_or_the_turn", func(c *suite) {
		c.inGroup("g", "a", "b", "c")
		m := c.claimOne("a")
		res := c.receive("b", group("other"), payload("new"))
		equal(c, res.Outcome, postroom.Replaced, "the content is replaced")
		c.is(res.Regrouped, "naming another group is reported")
		equal(c, c.get("b").Group, "g", "the group is kept")
		c.is(!c.receive("b", group("g"), payload("newer")).Regrouped, "the same group is no change")
		c.is(!c.receive("b", payload("newest")).Regrouped, "no group is no change")
		c.settle(m.Lease, box.Ack)
		c.runsInOrder("b", "c")
	}},
	{"LANE_replacing_with_a_later_due_time_steps_out_of_the_lane", func(c *suite) {
		c.inGroup("g", "a", "b", "c")
		m := c.claimOne("a")
		c.receive("b", group("g"), dueAt(c.now().Add(time.Hour)))
		c.expect("b", "deferred", "it is due later now")
		c.settle(m.Lease, box.Ack)
		c.settle(c.claimOne("c").Lease, box.Ack)
		c.Advance(2 * time.Hour)
		c.runsInOrder("b")
	}},
	{"LANE_an_expired_head_lets_the_next_go", func(c *suite) {
		c.receive("a", group("g"), expiresAt(c.now().Add(time.Hour)))
		c.inGroup("g", "b")
		c.Advance(2 * time.Hour)
		c.claim(10)
		c.expect("a", "dead", "it had expired")
		got := c.claim(10)
		if len(got) == 0 {
			c.expect("b", "leased", "it is the head at the latest with the next claim")
		}
	}},
	{"LANE_once_and_guard_ignore_the_group_of_a_new_message", func(c *suite) {
		c.inGroup("g", "a")
		c.claimOne("a")
		equal(c, c.once("b", group("g")).Outcome, postroom.Accepted, "a new message runs at once")
		equal(c, c.guard("c", false, group("g")).Outcome, postroom.Accepted, "a new message runs at once")
	}},
	{"LANE+NEVER-23_a_guarded_message_received_meanwhile_enters_its_lane", func(c *suite) {
		guarded := c.guard("a", true, group("g"))
		c.inGroup("g", "b")
		c.receive("a", group("g"))
		m := c.claimOne("b")
		c.settle(guarded.Lease, box.Abandon, after(time.Second))
		c.Advance(time.Minute)
		c.claimNone("the head is running, and a message of its group must wait")
		c.settle(m.Lease, box.Ack)
		c.runsInOrder("a")
	}},
	{"LANE_many_groups", func(c *suite) {
		var puts []box.Put
		for i := range 300 {
			puts = append(puts, c.putting(box.Queue, number(i), group("g"+number(i%30))))
		}
		c.puts(puts...)
		next := make([]int, 30)
		for run := 0; run < 300; {
			got := c.claim(50)
			if len(got) == 0 {
				c.Fatalf("nothing is ready after %d of 300 messages", run)
			}
			seen := map[string]bool{}
			for _, m := range got {
				c.is(!seen[m.Group], "two of group %s are leased at once", m.Group)
				seen[m.Group] = true
				g := atoi(m.Group[1:])
				equal(c, m.ID, number(g+30*next[g]), "group "+m.Group+" keeps its order")
				next[g]++
				run++
			}
			var acks []box.Settlement
			for _, m := range got {
				acks = append(acks, box.Settlement{Lease: m.Lease, Verb: box.Ack})
			}
			c.settleAll(acks...)
		}
		c.claimNone("all have run")
	}},
}

package storetest

import (
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

var receiveCases = []entry{
	{"IBX-013+P1_a_received_message_is_kept", func(c *suite) {
		res := c.receive("a")
		equal(c, res.Outcome, postroom.Accepted, "the message is new")
		equal(c, res.State, postroom.StateProcessing, "it waits to be handled")
		rec := c.get("a")
		equal(c, rec.Seq, res.Seq, "the result names the stored message")
		equal(c, string(rec.Payload), "payload of a", "the payload is kept")
		equal(c, rec.Topic, "topic", "the topic is kept")
		equal(c, rec.Key(), c.key("a"), "the key is kept")
	}},
	{"IBX-014_the_same_message_again_is_a_duplicate", func(c *suite) {
		first := c.receive("a")
		again := c.receive("a")
		equal(c, again.Outcome, postroom.Duplicate, "it was received before, with the same content")
		equal(c, again.Seq, first.Seq, "both are one message")
		c.claimOne("a")
	}},
	{"IBX-014_a_key_twice_in_a_batch_is_one_message", func(c *suite) {
		res := c.puts(
			c.putting(box.Queue, "a"),
			c.putting(box.Queue, "b"),
			c.putting(box.Queue, "a"),
			c.putting(box.Queue, "a", payload("new")),
			c.putting(box.Queue, "a", payload("new")),
		)
		want := []postroom.Outcome{postroom.Accepted, postroom.Accepted, postroom.Duplicate, postroom.Replaced, postroom.Duplicate}
		for i, o := range want {
			equal(c, res[i].Outcome, o, "a batch gives the outcomes of the same calls one after another")
		}
		equal(c, res[2].Seq, res[0].Seq, "a key twice in a call is one message")
		rec := c.get("a")
		equal(c, string(rec.Payload), "new", "the last content of the batch stands")
		equal(c, rec.Revision, 2, "it had two contents")
	}},
	{"P1_what_a_put_was_given_is_the_callers_again", func(c *suite) {
		puts := []box.Put{c.putting(box.Queue, "a"), c.putting(box.Queue, "b")}
		_, err := c.Store.Put(c.ctx, nil, puts)
		c.must(err, "put")
		for i := range puts {
			clear(puts[i].Message.Payload)
		}
		clear(puts)
		got := c.claim(10)
		equal(c, ids(got), []string{"a", "b"}, "the callers of a commit share a slice, which is used again")
		for _, m := range got {
			equal(c, string(m.Payload), "payload of "+m.ID, "the bytes were the caller's")
		}
	}},
	{"P4_a_malformed_message_is_dead_from_the_start", func(c *suite) {
		bad := c.putting(box.Queue, "bad")
		bad.Dead = "no JSON"
		res := c.puts(c.putting(box.Queue, "good"), bad, bad, c.putting(box.Queue, "next"))
		equal(c, res[1].Outcome, postroom.Dead, "it can't be handled")
		equal(c, res[1].State, postroom.StateDead, "it can't be handled")
		equal(c, res[1].Died, "no JSON", "its death is told once")
		equal(c, res[2].Outcome, postroom.Dead, "it is known by now")
		equal(c, res[2].Died, "", "its death is told once")
		rec := c.get("bad")
		equal(c, rec.LastError, "no JSON", "the reason is kept")
		equal(c, string(rec.Payload), "payload of bad", "the delivery is kept as it came")
		equal(c, rec.Attempt, 0, "it never ran")
		equal(c, ids(c.claim(10)), []string{"good", "next"}, "its neighbours are handled, it is not")
		again := c.puts(bad)[0]
		equal(c, again.Outcome, postroom.Dead, "the same delivery is the same message")
		equal(c, again.Seq, res[1].Seq, "the same delivery is the same message")
		c.is(c.move(box.Requeue, "bad").Changed, "an operator can requeue it")
		c.claimOne("bad")
	}},
	{"IBX-014_modes_mix_in_a_batch", func(c *suite) {
		res := c.puts(
			c.putting(box.Check, "a", bare),
			c.putting(box.Queue, "a"),
			c.putting(box.Once, "a"),
			c.putting(box.Queue, "a"),
			c.putting(box.Guard, "b"),
			c.putting(box.Once, "b"),
		)
		want := []postroom.Outcome{postroom.Accepted, postroom.Accepted, postroom.Accepted, postroom.Duplicate, postroom.Accepted, 0}
		for i, o := range want {
			equal(c, res[i].Outcome, o, "a batch gives the outcomes of the same calls one after another")
		}
		c.fails(res[5].Err, postroom.ErrInProgress, "the guarded run of the same batch holds b")
		c.expect("a", "done", "it was looked up, received, then processed once")
		c.expect("b", "leased", "it is guarded")
	}},
	{"IBX-014_a_batch_of_duplicates_is_no_error", func(c *suite) {
		c.receiveAll("a", "b", "c")
		for _, res := range c.puts(c.putting(box.Queue, "c"), c.putting(box.Queue, "a"), c.putting(box.Queue, "b")) {
			equal(c, res.Outcome, postroom.Duplicate, "all were received before")
		}
		equal(c, len(c.claim(10)), 3, "each is one message")
	}},
	{"IBX-014_a_large_batch", func(c *suite) {
		var puts []box.Put
		for i := range 700 {
			puts = append(puts, c.putting(box.Queue, "m"+number(i%500)))
		}
		accepted := 0
		for _, res := range c.puts(puts...) {
			if res.Outcome == postroom.Accepted {
				accepted++
			}
		}
		equal(c, accepted, 500, "500 different messages are 500 accepted ones")
		equal(c, len(c.claim(1000)), 500, "and all of them are ready")
	}},
	{"IBX-014_known_messages_leave_gaps_in_a_batch", func(c *suite) {
		// 95 messages take a statement of each width.
		known := map[int]bool{0: true, 31: true, 32: true, 40: true, 94: true}
		for i := range 95 {
			if known[i] {
				c.receive("m" + number(i))
			}
		}
		later := c.now().Add(time.Hour)
		var puts []box.Put
		var ready []string
		for i := range 95 {
			switch id := "m" + number(i); {
			case known[i]:
				puts = append(puts, c.putting(box.Queue, id))
			case i%10 == 3:
				puts = append(puts, c.putting(box.Queue, id, dueAt(later), group("g")))
			case i%10 == 5:
				puts = append(puts, c.putting(box.Queue, id, dueAt(later)))
			default:
				puts = append(puts, c.putting(box.Queue, id))
				ready = append(ready, id)
			}
		}
		c.equalOutcomes(c.puts(puts...), known)
		c.expect("m"+number(3), "deferred", "it is due in an hour, in its group")
		c.expect("m"+number(5), "scheduled", "it is due in an hour")
		got := c.claim(100)
		equal(c, ids(got)[:5], []string{"m" + number(0), "m" + number(31), "m" + number(32), "m" + number(40), "m" + number(94)}, "these came first")
		equal(c, ids(got)[5:], ready, "the others are in the order of the batch")
		for _, m := range got {
			equal(c, string(m.Payload), "payload of "+m.ID, "each has its own content")
		}
	}},
	{"IBX-021_topics_are_case_sensitive", func(c *suite) {
		c.receive("a", topic("Order.Created"))
		c.receive("b", topic("order.created"))
		for _, m := range c.claim(10) {
			want := map[string]string{"a": "Order.Created", "b": "order.created"}[m.ID]
			equal(c, m.Topic, want, "a topic is delivered as it was sent")
		}
		equal(c, c.receive("a", topic("order.created")).Outcome, postroom.Replaced, "another case is another topic")
	}},
	{"IBX-023+IBX-032_a_future_due_time_holds_back", func(c *suite) {
		c.receive("a", dueAt(c.now().Add(time.Hour)))
		c.expect("a", "scheduled", "it is due in an hour")
		c.claimNone("it is not due yet")
		c.Advance(59 * time.Minute)
		c.claimNone("it is not due yet")
		c.Advance(2 * time.Minute)
		c.claimOne("a")
	}},
	{"IBX-024_no_or_a_past_due_time_is_ready_at_once", func(c *suite) {
		c.receive("now")
		c.receive("past", dueAt(c.now().Add(-time.Hour)))
		equal(c, len(c.claim(10)), 2, "both can run at once")
	}},
	{"IBX-025_first_seen_is_the_stores_clock", func(c *suite) {
		before := c.now()
		c.receive("a")
		after := c.now()
		rec := c.get("a")
		c.is(!rec.FirstSeen.Before(before) && !rec.FirstSeen.After(after), "first seen %v is not between %v and %v", rec.FirstSeen, before, after)
		c.near(rec.LastSeen, rec.FirstSeen, "it came once")
		c.Advance(time.Hour)
		c.receive("a")
		c.near(c.get("a").FirstSeen, c.now().Add(-time.Hour), "a duplicate does not change first seen")
	}},
	{"IBX-027_a_new_message_is_processing_with_attempt_0", func(c *suite) {
		c.receive("a")
		rec := c.get("a")
		equal(c, rec.State, postroom.StateProcessing, "a new message waits to be handled")
		equal(c, rec.Attempt, 0, "nothing has run yet")
		equal(c, rec.Revision, 1, "it had one content")
		equal(c, rec.Lost, 0, "no lease was lost")
		equal(c, rec.Lease, postroom.Lease{}, "nobody has it")
	}},
	{"IBX-028_done_stays_done", func(c *suite) {
		c.receive("a", payload("old"))
		c.settle(c.claimOne("a").Lease, box.Ack)
		res := c.receive("a", payload("new"))
		equal(c, res.Outcome, postroom.Duplicate, "done is done, whatever the content")
		equal(c, res.State, postroom.StateDone, "and stays so")
		equal(c, string(c.get("a").Payload), "old", "the content that ran stays on record")
		c.claimNone("a done message never runs again")
	}},
	{"IBX-029_another_content_replaces_while_live", func(c *suite) {
		c.check("seen")
		c.receive("waiting", topic("old"), payload("old"), hashed("old", "sha256"))
		c.receive("dead", topic("old"), payload("old"), hashed("old", "sha256"))
		c.move(box.MarkDead, "dead")
		due := c.now().Add(time.Hour).Truncate(time.Microsecond)
		for id, want := range map[string]postroom.Outcome{"seen": postroom.Accepted, "waiting": postroom.Replaced, "dead": postroom.Dead} {
			res := c.receive(id, topic("new"), payload("new"), hashed("new", "sha256"), dueAt(due))
			equal(c, res.Outcome, want, "receiving another content on "+id)
			rec := c.get(id)
			equal(c, rec.Topic, "new", "the topic is replaced on "+id)
			equal(c, string(rec.Payload), "new", "the payload is replaced on "+id)
			equal(c, string(rec.Hash), "new", "the hash is replaced on "+id)
			c.is(rec.DueAt.Equal(due), "the due time is replaced on %s: got %v, want %v", id, rec.DueAt, due)
		}
		c.expect("dead", "dead", "an operator decides about the dead")
		c.claimNone("the new due time holds the others back")
	}},
	{"IBX-029_replacing_without_a_hash_clears_it", func(c *suite) {
		c.receive("a", payload("old"), hashed("old", "sha256"))
		c.receive("a", payload("new"))
		equal(c, len(c.get("a").Hash), 0, "the old hash is not that of the new content")
		c.is(!c.receive("a", payload("new"), hashed("new", "sha256")).Mismatch, "the new content's hash is adopted")
	}},
}

// equalOutcomes wants those that are known to be duplicates, and the others to be
// accepted.
func (c *suite) equalOutcomes(results []box.PutResult, known map[int]bool) {
	c.Helper()
	for i, res := range results {
		want := postroom.Accepted
		if known[i] {
			want = postroom.Duplicate
		}
		equal(c, res.Outcome, want, "message "+number(i)+" of the batch")
	}
}

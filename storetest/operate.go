package storetest

import (
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

func by(actor, reason string) func(*box.Move) {
	return func(m *box.Move) { m.Actor, m.Reason = actor, reason }
}

func (c *suite) list(f box.Filter) []*box.Record {
	c.Helper()
	f.Consumer = c.consumer
	res, err := ability[box.Lister](c).List(c.ctx, f)
	c.must(err, "list")
	return res
}

func (c *suite) listed(f box.Filter) []string {
	c.Helper()
	names := []string{}
	for _, rec := range c.list(f) {
		names = append(names, rec.ID)
	}
	return names
}

func (c *suite) audit(f box.AuditFilter) []box.AuditEntry {
	c.Helper()
	f.Consumer = c.consumer
	res, err := ability[box.Lister](c).Audit(c.ctx, f)
	c.must(err, "audit")
	return res
}

var operateCases = []entry{
	{"TABLE_a_requeued_message_starts_afresh", func(c *suite) {
		c.receive("a")
		c.settle(c.claimOne("a").Lease, box.Abandon, after(time.Second))
		c.Advance(time.Minute)
		old := c.claimOne("a").Lease
		c.settle(old, box.Fail, withError("hopeless"))
		res := c.move(box.Requeue, "a")
		c.is(res.Err == nil && res.Changed, "a dead message can be requeued: %+v", res)
		equal(c, res.State, postroom.StateProcessing, "it waits again")
		m := c.claimOne("a")
		equal(c, m.Attempt, 0, "attempts start afresh")
		c.is(m.Lease.Fence > old.Fence, "the fence goes on")
	}},
	{"TABLE_requeue_with_a_delay", func(c *suite) {
		c.receive("a")
		c.settle(c.claimOne("a").Lease, box.Fail)
		c.move(box.Requeue, "a", func(m *box.Move) { m.Delay = time.Hour })
		c.expect("a", "scheduled", "it is held back")
		c.claimNone("it is held back")
		c.Advance(2 * time.Hour)
		c.claimOne("a")
	}},
	{"TABLE_moves_succeed_or_fail_one_by_one", func(c *suite) {
		c.receiveAll("dead", "leased")
		c.move(box.MarkDead, "dead")
		c.claimOne("leased")
		c.once("done")
		var moves []box.Move
		for _, id := range []string{"unknown", "dead", "leased", "done", "dead"} {
			moves = append(moves, box.Move{Key: c.key(id), Action: box.Requeue})
		}
		res, err := c.Store.Move(c.ctx, moves)
		c.must(err, "requeue five")
		want := []error{postroom.ErrNotFound, nil, postroom.ErrLeased, postroom.ErrDone, nil}
		for i := range want {
			c.fails(res[i].Err, want[i], "requeue of message "+moves[i].Key.ID)
		}
		c.is(res[1].Changed && !res[4].Changed, "a message twice in a call moves once")
	}},
	{"TABLE_discard_is_done_with_a_note", func(c *suite) {
		c.receive("a")
		c.move(box.Discard, "a", by("eve", "sent by mistake"))
		rec := c.get("a")
		c.is(rec.State == postroom.StateDone && rec.Done.Discarded, "discarded is done: %+v", rec.Done)
		equal(c, rec.Done.Note, "sent by mistake", "with its reason")
		equal(c, c.receive("a").Outcome, postroom.Duplicate, "and still finds duplicates")
	}},
	{"TABLE_mark_dead_keeps_its_reason", func(c *suite) {
		c.receive("a")
		c.move(box.MarkDead, "a", by("", "poison"))
		equal(c, c.get("a").LastError, "poison", "the reason is the error")
		equal(c, len(c.audit(box.AuditFilter{})), 0, "a move without an actor is not audited")
	}},
	{"TABLE_a_replay_runs_the_newest_content", func(c *suite) {
		c.receive("a", payload("v1"))
		m := c.claimOne("a")
		c.receive("a", payload("v2"))
		c.settle(m.Lease, box.Ack)
		c.move(box.Replay, "a")
		m = c.claimOne("a")
		equal(c, string(m.Payload), "v2", "the content that was superseded runs now")
		equal(c, m.Revision, 2, "under its revision")
		c.is(!c.settle(m.Lease, box.Ack).Superseded, "and is the newest")
	}},
	{"OPS_audit_has_who_what_and_why", func(c *suite) {
		c.receiveAll("a", "b")
		c.move(box.MarkDead, "a", by("eve", "poison"))
		c.move(box.Requeue, "a", by("adam", "was fixed"))
		c.move(box.Requeue, "a", by("adam", "again"))
		c.move(box.Requeue, "unknown", by("adam", "no such message"))
		c.move(box.Discard, "b", by("eve", "spam"))
		got := c.audit(box.AuditFilter{})
		want := []box.AuditEntry{
			{Actor: "eve", Reason: "spam", Action: "discard", Key: c.key("b")},
			{Actor: "adam", Reason: "was fixed", Action: "requeue", Key: c.key("a")},
			{Actor: "eve", Reason: "poison", Action: "mark dead", Key: c.key("a")},
		}
		if len(got) != len(want) {
			c.Fatalf("audit has %d entries, want the %d moves that changed something: %+v", len(got), len(want), got)
		}
		for i := range want {
			c.near(got[i].At, c.now(), "an entry has its time")
			want[i].Entry, want[i].At = got[i].Entry, got[i].At
			equal(c, got[i], want[i], "the newest comes first")
		}
		page := c.audit(box.AuditFilter{Limit: 1})
		equal(c, page, got[:1], "the limit is kept")
		equal(c, c.audit(box.AuditFilter{Limit: 1, Before: page[0].Entry}), got[1:2], "the next page begins behind the last")
	}},
	{"OPS_listing_filters", func(c *suite) {
		c.check("seen")
		c.receive("a", topic("x"))
		c.receive("b", topic("y"), group("g"))
		c.receive("c", topic("x"), from("elsewhere"))
		c.receive("dead", topic("y"))
		c.move(box.MarkDead, "dead")
		c.once("done", topic("x"))
		equal(c, c.listed(box.Filter{}), []string{"seen", "a", "b", "c", "dead", "done"}, "all, in order of arrival")
		equal(c, c.listed(box.Filter{State: postroom.StateSeen}), []string{"seen"}, "by state")
		equal(c, c.listed(box.Filter{State: postroom.StateProcessing}), []string{"a", "b", "c"}, "by state")
		equal(c, c.listed(box.Filter{State: postroom.StateDead}), []string{"dead"}, "by state")
		equal(c, c.listed(box.Filter{State: postroom.StateDone}), []string{"done"}, "by state")
		equal(c, c.listed(box.Filter{Topic: "x"}), []string{"a", "c", "done"}, "by topic")
		equal(c, c.listed(box.Filter{Topic: "X"}), []string{}, "topics are case-sensitive")
		equal(c, c.listed(box.Filter{Source: "elsewhere"}), []string{"c"}, "by source")
		equal(c, c.listed(box.Filter{Group: "g"}), []string{"b"}, "by group")
		equal(c, c.listed(box.Filter{Topic: "x", State: postroom.StateDone}), []string{"done"}, "by several")
	}},
	{"OPS_listing_by_the_time_of_the_end", func(c *suite) {
		c.once("early")
		c.Advance(time.Hour)
		c.once("late")
		early, late := c.get("early").Done.At, c.get("late").Done.At
		done := func(from, until time.Time) []string {
			return c.listed(box.Filter{State: postroom.StateDone, DoneFrom: from, DoneUntil: until})
		}
		equal(c, done(early, late), []string{"early"}, "the first bound is in the range, the second is not")
		equal(c, done(early.Add(time.Microsecond), time.Time{}), []string{"late"}, "a range without an end")
		equal(c, done(time.Time{}, late), []string{"early"}, "a range without a beginning")
	}},
	{"OPS_listing_what_is_overdue", func(c *suite) {
		c.receive("old")
		c.receive("due-later", dueAt(c.now().Add(time.Hour)))
		c.Advance(time.Hour)
		c.receive("new")
		overdue := func(d time.Duration) []string {
			return c.listed(box.Filter{State: postroom.StateProcessing, Overdue: d})
		}
		equal(c, overdue(30*time.Minute), []string{"old"}, "waiting begins when a message is received or falls due")
		equal(c, overdue(2*time.Hour), []string{}, "nothing has waited that long")
	}},
	{"OPS_listing_pages_by_key", func(c *suite) {
		for i := range 7 {
			c.receive(number(i))
		}
		var all []string
		var last int64
		for len(all) < 7 {
			page := c.list(box.Filter{After: last, Limit: 3, State: postroom.StateProcessing})
			if len(page) != 3 {
				c.Fatalf("a page has %d records, want 3", len(page))
			}
			for _, rec := range page {
				c.is(rec.Seq > last, "Seq %d after %d: the order is ascending", rec.Seq, last)
				last = rec.Seq
				all = append(all, rec.ID)
			}
			c.receive("new-" + number(len(all)))
		}
		equal(c, all[:7], []string{"0", "1", "2", "3", "4", "5", "6"}, "pages neither skip nor repeat while messages arrive")
	}},
	{"OPS_listing_gives_payloads_when_asked", func(c *suite) {
		c.receive("a", func(m *postroom.Message) { m.Headers = map[string]string{"h": "v"} })
		rec := c.list(box.Filter{})[0]
		c.is(rec.Payload == nil && rec.Headers == nil, "payload or headers came unasked: %q %v", rec.Payload, rec.Headers)
		rec = c.list(box.Filter{WithPayload: true})[0]
		equal(c, string(rec.Payload), "payload of a", "the payload was asked for")
		equal(c, rec.Headers["h"], "v", "and the headers")
		equal(c, rec, c.get("a"), "a listed record is the one that get gives")
	}},
	{"OPS_get_of_an_unknown_message", func(c *suite) {
		_, err := c.Store.Get(c.ctx, c.key("unknown"))
		c.fails(err, postroom.ErrNotFound, "there is no such message")
	}},
	{"TABLE_pausing_parks_and_resuming_goes_on", func(c *suite) {
		p := ability[box.Pauser](c)
		pause := func() { c.must(p.Pause(c.ctx, c.consumer, "topic", "eve", "too hot"), "pause") }
		paused := func() []string {
			got, err := p.Paused(c.ctx, c.consumer)
			c.must(err, "paused")
			return got
		}
		equal(c, len(paused()), 0, "nothing is paused at first")
		pause()
		pause()
		equal(c, paused(), []string{"topic"}, "pausing is idempotent")
		c.receive("a")
		c.receive("b", topic("going on"))
		for _, m := range c.claim(10) {
			if m.ID == "a" {
				c.settle(m.Lease, box.Park)
			}
		}
		rec := c.get("a")
		equal(c, rec.Stage, postroom.StageParked, "it waits for its topic")
		equal(c, rec.Attempt, 0, "at no cost")
		c.claimNone("the topic is paused")
		c.must(p.Resume(c.ctx, c.consumer, "topic", "eve"), "resume")
		c.must(p.Resume(c.ctx, c.consumer, "topic", "eve"), "resume again")
		equal(c, len(paused()), 0, "resuming is idempotent")
		c.expect("a", "ready", "resuming makes it ready")
		equal(c, ids(c.claimWith(box.ClaimRequest{Limit: 10, ReadyOnly: true})), []string{"a"}, "without looking further")
	}},
	{"TABLE_a_message_parked_by_mistake_goes_on", func(c *suite) {
		ability[box.Pauser](c)
		c.receive("a")
		c.settle(c.claimOne("a").Lease, box.Park)
		c.claimOne("a")
	}},
	{"OPS_pausing_is_audited", func(c *suite) {
		p := ability[box.Pauser](c)
		c.must(p.Pause(c.ctx, c.consumer, "hot", "eve", "too hot"), "pause")
		c.must(p.Resume(c.ctx, c.consumer, "hot", "adam"), "resume")
		got := c.audit(box.AuditFilter{})
		if len(got) != 2 {
			c.Fatalf("audit has %d entries, want pause and resume: %+v", len(got), got)
		}
		want := []box.AuditEntry{
			{Actor: "adam", Action: "resume", Key: postroom.Key{Consumer: c.consumer}, Detail: "hot"},
			{Actor: "eve", Reason: "too hot", Action: "pause", Key: postroom.Key{Consumer: c.consumer}, Detail: "hot"},
		}
		for i := range want {
			want[i].Entry, want[i].At = got[i].Entry, got[i].At
			equal(c, got[i], want[i], "the entry names the topic")
		}
	}},
	{"OPS_a_topic_is_paused_for_one_consumer", func(c *suite) {
		p := ability[box.Pauser](c)
		c.must(p.Pause(c.ctx, c.consumer, "topic", "", ""), "pause")
		got, err := p.Paused(c.ctx, c.consumer+"-2")
		c.must(err, "paused")
		equal(c, len(got), 0, "another consumer goes on")
	}},
}

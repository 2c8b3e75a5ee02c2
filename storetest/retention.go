package storetest

import (
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

const day = 24 * time.Hour

func (c *suite) cleanup(req box.CleanupRequest) box.CleanupResult {
	c.Helper()
	req.Consumer = c.consumer
	res, err := c.sweeper().Cleanup(c.ctx, req)
	c.must(err, "cleanup")
	return res
}

var retentionCases = []entry{
	{"IBX-098+IBX-100+NEVER-11_done_past_retention_is_forgotten", func(c *suite) {
		c.once("old")
		c.Advance(20 * day)
		c.once("young")
		c.Advance(15 * day)
		res := c.cleanup(box.CleanupRequest{Records: 30 * day})
		equal(c, res, box.CleanupResult{Records: 1}, "one is older than 30 days")
		c.expect("old", "none", "it is forgotten")
		c.expect("young", "done", "it is remembered")
		equal(c, c.receive("old").Outcome, postroom.Accepted, "a duplicate past the retention is a new message")
		equal(c, c.receive("young").Outcome, postroom.Duplicate, "one within it is a duplicate")
	}},
	{"IBX-100_retention_counts_from_the_end_not_the_arrival", func(c *suite) {
		c.receive("a")
		c.Advance(20 * day)
		c.settle(c.claimOne("a").Lease, box.Ack)
		c.Advance(15 * day)
		equal(c, c.cleanup(box.CleanupRequest{Records: 30 * day}), box.CleanupResult{}, "it was done 15 days ago")
		c.expect("a", "done", "it was done 15 days ago")
	}},
	{"IBX-100_zero_keeps_for_ever", func(c *suite) {
		c.once("a")
		c.Advance(10000 * day)
		equal(c, c.cleanup(box.CleanupRequest{}), box.CleanupResult{}, "neither payloads nor records have a retention")
		c.expect("a", "done", "0 is for ever")
	}},
	{"IBX-099+NEVER-11_only_done_is_removed", func(c *suite) {
		c.check("seen")
		c.check("idle")
		c.move(box.MarkProcessing, "idle")
		c.receive("leased")
		c.claimOne("leased")
		c.receive("dead")
		c.settle(c.claimOne("dead").Lease, box.Fail)
		c.guard("guarded", false)
		c.receive("ready")
		c.receive("arrived", group("g"))
		c.receive("scheduled", dueAt(c.now().Add(5000*day)))
		c.Advance(1000 * day)
		res := c.cleanup(box.CleanupRequest{Payloads: time.Second, Records: time.Second})
		equal(c, res, box.CleanupResult{}, "nothing of it is done")
		for id, stage := range map[string]string{
			"seen": "seen", "idle": "idle", "leased": "leased", "dead": "dead",
			"guarded": "leased", "ready": "ready", "arrived": "arrived", "scheduled": "scheduled",
		} {
			c.expect(id, stage, "cleanup removes only what is done")
		}
		equal(c, string(c.get("dead").Payload), "payload of dead", "cleanup empties only what is done")
	}},
	{"IBX-101+NEVER-11_cleanup_goes_in_batches", func(c *suite) {
		for i := range 5 {
			c.once(number(i))
		}
		c.Advance(day)
		for _, want := range []box.CleanupResult{{Records: 2, More: true}, {Records: 2, More: true}, {Records: 1}} {
			equal(c, c.cleanup(box.CleanupRequest{Records: time.Hour, Limit: 2}), want, "two at most with each call")
		}
		equal(c, c.cleanup(box.CleanupRequest{Records: time.Hour, Limit: 2}), box.CleanupResult{}, "nothing is left")
	}},
	{"IBX-098_payloads_go_before_records", func(c *suite) {
		c.receive("a", func(m *postroom.Message) { m.Headers = map[string]string{"h": "v"} })
		c.settle(c.claimOne("a").Lease, box.Ack)
		c.Advance(10 * day)
		req := box.CleanupRequest{Payloads: 7 * day, Records: 30 * day}
		equal(c, c.cleanup(req), box.CleanupResult{Payloads: 1}, "its payload is past retention, its record is not")
		rec := c.get("a")
		c.is(len(rec.Payload) == 0 && len(rec.Headers) == 0, "payload and headers are gone: %q %v", rec.Payload, rec.Headers)
		c.is(rec.Done.Purged, "the record says so")
		equal(c, rec.Topic, "topic", "the rest of the record is kept")
		equal(c, c.receive("a").Outcome, postroom.Duplicate, "and still finds duplicates")
		equal(c, c.cleanup(req), box.CleanupResult{}, "a payload is emptied once")
		c.fails(c.move(box.Replay, "a").Err, postroom.ErrPurged, "without a payload it can't run again")
		c.expect("a", "done", "a refused replay changes nothing")
		c.Advance(30 * day)
		equal(c, c.cleanup(req), box.CleanupResult{Records: 1}, "its record is past retention too")
	}},
	{"IBX-098_the_batch_limit_is_shared", func(c *suite) {
		c.once("old")
		c.Advance(10 * day)
		c.once("young")
		c.once("younger")
		c.Advance(10 * day)
		res := c.cleanup(box.CleanupRequest{Payloads: 5 * day, Records: 15 * day, Limit: 2})
		equal(c, res.Records+res.Payloads, 2, "the limit is that of both together")
		c.is(res.More, "the batch was full")
		c.cleanup(box.CleanupRequest{Payloads: 5 * day, Records: 15 * day, Limit: 10})
		c.expect("old", "none", "its record is past retention")
		c.is(c.get("young").Done.Purged && c.get("younger").Done.Purged, "the other payloads are past retention")
	}},
	{"NEVER-11_a_replayed_message_is_not_removed", func(c *suite) {
		c.receive("a")
		c.settle(c.claimOne("a").Lease, box.Ack)
		c.Advance(day)
		c.move(box.Replay, "a")
		equal(c, c.cleanup(box.CleanupRequest{Records: time.Hour, Payloads: time.Hour}), box.CleanupResult{}, "it is not done any more")
		equal(c, string(c.claimOne("a").Payload), "payload of a", "it runs again with its payload")
	}},
	{"NEVER-11_a_late_duplicate_does_not_prolong_retention", func(c *suite) {
		c.once("a")
		c.Advance(day)
		c.receive("a")
		equal(c, c.cleanup(box.CleanupRequest{Records: time.Hour}).Records, 1, "retention counts from when it was done")
	}},
	{"IBX-098_consumers_are_cleaned_apart", func(c *suite) {
		second := c.as(c.consumer + "-2")
		c.once("a")
		second.once("a")
		c.Advance(day)
		equal(c, c.cleanup(box.CleanupRequest{Records: time.Hour}).Records, 1, "each consumer has its own retention")
		second.expect("a", "done", "nobody cleaned for the second consumer")
	}},
	{"NEVER-11+LANE_a_lane_survives_cleanup", func(c *suite) {
		c.inGroup("g", "a", "b", "c")
		c.settle(c.claimOne("a").Lease, box.Ack)
		c.Advance(day)
		equal(c, c.cleanup(box.CleanupRequest{Records: time.Hour}).Records, 1, "the first of the group is past retention")
		c.runsInOrder("b", "c")
	}},
}

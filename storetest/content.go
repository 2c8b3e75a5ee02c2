package storetest

import (
	"bytes"
	"strconv"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

func number(i int) string { return strconv.Itoa(i) }

func atoi(s string) int {
	i, _ := strconv.Atoi(s)
	return i
}

var contentCases = []entry{
	{"IBX-019_an_empty_payload_is_valid", func(c *suite) {
		c.receive("a", payload(""))
		m := c.claimOne("a")
		c.is(m.Payload != nil && len(m.Payload) == 0, "payload is %v, want empty and not nil", m.Payload)
		equal(c, c.receive("a", payload("")).Outcome, postroom.Duplicate, "empty is the same as empty")
	}},
	{"IBX-022+IBX-118_payloads_are_bytes_up_to_the_limit", func(c *suite) {
		every := make([]byte, 256)
		for i := range every {
			every[i] = byte(i)
		}
		large := bytes.Repeat(every, postroom.MaxPayload/len(every))
		c.receive("small", payload(string(every)))
		c.receive("large", payload(string(large)))
		for _, m := range c.claim(10) {
			want := map[string][]byte{"small": every, "large": large}[m.ID]
			c.is(bytes.Equal(m.Payload, want), "payload of %s came back changed: %d bytes, want %d", m.ID, len(m.Payload), len(want))
		}
		c.is(bytes.Equal(c.get("large").Payload, large), "get gives another payload than was received")
	}},
	{"IBX-013_all_parts_of_a_message_survive", func(c *suite) {
		at := time.Date(2031, 2, 3, 4, 5, 6, 123456789, time.FixedZone("east", 5*3600+1800))
		expires := c.now().Add(100 * time.Hour)
		c.receive("a", group("g ü"), expiresAt(expires), hashed("\x00\xff", "blake3"), func(m *postroom.Message) {
			m.Headers = map[string]string{"traceparent": "00-ab-cd-01", "quote\"'": "ünï\ncode 🎺", "empty": ""}
			m.OccurredAt = at
			m.CorrelationID, m.CausationID = "corr 'x'", "cause \"y\""
		})
		for _, m := range []*postroom.Message{c.claimOne("a"), &c.get("a").Message} {
			equal(c, m.Headers, map[string]string{"traceparent": "00-ab-cd-01", "quote\"'": "ünï\ncode 🎺", "empty": ""}, "headers survive")
			equal(c, m.Group, "g ü", "the group survives")
			equal(c, m.CorrelationID, "corr 'x'", "the correlation id survives")
			equal(c, m.CausationID, "cause \"y\"", "the causation id survives")
			equal(c, string(m.Hash), "\x00\xff", "the hash survives")
			equal(c, m.HashAlg, "blake3", "the hash's algorithm survives")
			want := at.Truncate(time.Microsecond)
			c.is(m.OccurredAt.Equal(want), "time of occurrence is %v, want %v: microseconds survive", m.OccurredAt, want)
			equal(c, m.OccurredAt.Location(), time.UTC, "times are in UTC")
			equal(c, m.FirstSeen.Location(), time.UTC, "times are in UTC")
			c.is(m.ExpiresAt.Equal(expires.Truncate(time.Microsecond)), "expiry is %v, want %v", m.ExpiresAt, expires)
			c.is(m.DueAt.IsZero(), "due time is %v, want none", m.DueAt)
			equal(c, m.Consumer, c.consumer, "the consumer is set on delivery")
		}
	}},
	{"IBX-013_unset_parts_stay_unset", func(c *suite) {
		c.receive("a")
		m := c.claimOne("a")
		c.is(len(m.Headers) == 0 && len(m.Hash) == 0 && m.HashAlg == "", "headers or hash appeared: %v %v %q", m.Headers, m.Hash, m.HashAlg)
		c.is(m.DueAt.IsZero() && m.ExpiresAt.IsZero() && m.OccurredAt.IsZero(), "a time appeared: %v %v %v", m.DueAt, m.ExpiresAt, m.OccurredAt)
		equal(c, m.Group+m.CorrelationID+m.CausationID+m.LastError, "", "a text appeared")
	}},
	{"IBX-013_callers_do_not_share_memory_with_the_store", func(c *suite) {
		mine := c.putting(box.Queue, "a", payload("mine"))
		mine.Message.Headers = map[string]string{"h": "mine"}
		c.puts(mine)
		mine.Message.Payload[0], mine.Message.Headers["h"] = 'X', "X"
		rec := c.get("a")
		equal(c, string(rec.Payload), "mine", "the sender's buffer is its own")
		equal(c, rec.Headers["h"], "mine", "the sender's headers are its own")
		rec.Payload[0], rec.Headers["h"] = 'X', "X"
		m := c.claimOne("a")
		equal(c, string(m.Payload), "mine", "a reader's buffer is its own")
		equal(c, m.Headers["h"], "mine", "a reader's headers are its own")
	}},
	{"IBX-029_headers_alone_are_no_other_content", func(c *suite) {
		c.receive("a")
		res := c.receive("a", func(m *postroom.Message) { m.Headers = map[string]string{"x-redelivered": "1"} })
		equal(c, res.Outcome, postroom.Duplicate, "brokers change headers with each delivery")
		equal(c, c.get("a").Revision, 1, "a duplicate is no new content")
	}},
	{"IBX-029_keep_leaves_the_content", func(c *suite) {
		c.receive("a", payload("old"))
		p := c.putting(box.Queue, "a", payload("new"))
		p.Keep = true
		equal(c, c.puts(p)[0].Outcome, postroom.Conflict, "OnDuplicate: Keep answers Conflict")
		rec := c.get("a")
		equal(c, string(rec.Payload), "old", "and keeps the content")
		equal(c, rec.Revision, 1, "and the revision")
		p = c.putting(box.Queue, "a", payload("old"))
		p.Keep = true
		equal(c, c.puts(p)[0].Outcome, postroom.Duplicate, "the same content is a duplicate all the same")
	}},
	{"IBX-029_revisions_count_contents", func(c *suite) {
		for i := 1; i <= 4; i++ {
			c.receive("a", payload("v"+number(i)))
			c.receive("a", payload("v"+number(i)))
			equal(c, c.get("a").Revision, i, "each other content is a revision, a repetition is not")
		}
		m := c.claimOne("a")
		equal(c, m.Revision, 4, "the newest is delivered")
		equal(c, m.Lease.Revision, 4, "and its lease says so")
		equal(c, string(m.Payload), "v4", "the newest is delivered")
		c.settle(m.Lease, box.Ack)
		equal(c, c.get("a").Done.Revision, 4, "the outcome names the revision that ran")
	}},
	{"IBX-029+TABLE_a_replacement_during_a_run_is_for_the_next_run", func(c *suite) {
		c.receive("a", payload("v1"))
		m := c.claimOne("a")
		equal(c, c.receive("a", payload("v2")).Outcome, postroom.Replaced, "a leased message takes the new content")
		c.expect("a", "leased", "its run goes on")
		c.settle(m.Lease, box.Abandon, after(time.Second))
		c.Advance(time.Minute)
		m = c.claimOne("a")
		equal(c, string(m.Payload), "v2", "the next run has the new content")
		res := c.settle(m.Lease, box.Ack)
		c.is(!res.Superseded, "the newest content ran")
	}},
	{"IBX-029_acking_an_older_revision_is_done_and_superseded", func(c *suite) {
		c.receive("a", payload("v1"))
		m := c.claimOne("a")
		c.receive("a", payload("v2"))
		res := c.settle(m.Lease, box.Ack)
		equal(c, res.State, postroom.StateDone, "the run succeeded")
		c.is(res.Superseded, "the result tells that a newer content was not run")
		rec := c.get("a")
		c.is(rec.Done.Superseded, "and so does the outcome")
		equal(c, rec.Done.Revision, 1, "the outcome names the revision that ran")
		c.claimNone("it is done")
	}},
	{"IBX-029_a_due_time_never_shortens_a_backoff", func(c *suite) {
		c.receive("a")
		c.settle(c.claimOne("a").Lease, box.Abandon, after(time.Hour))
		c.receive("a", dueAt(c.now().Add(time.Minute)))
		c.expect("a", "scheduled", "due in a minute, to be retried in an hour")
		c.Advance(30 * time.Minute)
		c.claimNone("the later of due and retry counts")
		c.receive("a", dueAt(c.now().Add(2*time.Hour)))
		c.Advance(time.Hour)
		c.claimNone("the later of due and retry counts")
		c.Advance(2 * time.Hour)
		c.claimOne("a")
	}},
	{"IBX-029_a_due_time_can_be_taken_back", func(c *suite) {
		c.receive("a", dueAt(c.now().Add(time.Hour)))
		c.receive("a")
		c.claimOne("a")
	}},
}

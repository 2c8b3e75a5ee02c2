package storetest

import (
	"strings"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// evil are ids of which no two are the same, though many a collation thinks so.
var evil = []string{
	"a", "A", "á", "a\u0301", "à", "ａ", "ß", "ss", "SS", "ẞ", "i", "I", "ı", "İ",
	"x", "x ", " x", "x\t", "x\n", "x\u00a0", "x\u200b", "\ufeffx", "x\u00ad",
	"🎺", "🎻", "👩‍👩‍👧", "👩👩👧", "\U0010ffff", "\uffff", "\u0001", "\u007f",
	"'", "''", "\"", "\\", "\\\\", "%", "_", "a%", "a_", "?", "$1", "{{message}}", ":id", "@id",
	"'; DROP TABLE postroom_message; --", "' OR '1'='1", "/* x */", "null", "NULL", "0", "00", "0.0", "1e0", "1",
}

var nameCases = []entry{
	{"NEVER-19_evil_ids", func(c *suite) {
		var puts []box.Put
		for _, id := range evil {
			puts = append(puts, c.putting(box.Queue, id))
		}
		for i, res := range c.puts(puts...) {
			equal(c, res.Outcome, postroom.Accepted, "id "+quote(evil[i])+" is unlike all others")
		}
		for i, res := range c.puts(puts...) {
			equal(c, res.Outcome, postroom.Duplicate, "id "+quote(evil[i])+" is the same as itself")
		}
		got := map[string]string{}
		for _, m := range c.claim(len(evil) + 1) {
			got[m.ID] = string(m.Payload)
			c.settle(m.Lease, box.Ack)
		}
		for _, id := range evil {
			equal(c, got[id], "payload of "+id, "id "+quote(id)+" comes back as it was sent, with its own payload")
			equal(c, c.check(id).Outcome, postroom.Duplicate, "id "+quote(id)+" was processed")
		}
	}},
	{"NEVER-19_evil_sources", func(c *suite) {
		for _, name := range evil {
			equal(c, c.once("id", from(name)).Outcome, postroom.Accepted, "source "+quote(name)+" is unlike all others")
		}
		for _, name := range evil {
			equal(c, c.once("id", from(name)).Outcome, postroom.Duplicate, "source "+quote(name)+" is the same as itself")
		}
	}},
	{"NEVER-19+LANE_evil_groups", func(c *suite) {
		for i, name := range evil {
			c.receive(number(i), group(name))
		}
		equal(c, len(c.claim(len(evil)+1)), len(evil), "each group has a head: no two groups are the same")
	}},
	{"NEVER-19+IBX-021_evil_topics", func(c *suite) {
		for i, name := range evil {
			c.receive(number(i), topic(name))
		}
		for _, m := range c.claim(len(evil) + 1) {
			equal(c, m.Topic, evil[atoi(m.ID)], "a topic comes back as it was sent")
		}
		p := ability[box.Pauser](c)
		for _, name := range evil {
			c.must(p.Pause(c.ctx, c.consumer, name, "", ""), "pause")
		}
		got, err := p.Paused(c.ctx, c.consumer)
		c.must(err, "paused")
		equal(c, len(got), len(evil), "no two topics are the same")
	}},
	{"NEVER-19_source_and_id_do_not_run_together", func(c *suite) {
		c.once("bc", from("a"))
		equal(c, c.once("c", from("ab")).Outcome, postroom.Accepted, "a+bc and ab+c are two keys")
	}},
	{"NEVER-19+IBX-011+IBX-012+IBX-020_names_at_their_limits", func(c *suite) {
		for _, long := range []string{strings.Repeat("x", 255), strings.Repeat("ü", 255), strings.Repeat("🎺", 187)} {
			m := c.message(long, from(long), topic(long), group(long))
			if err := m.Validate(true, 0); err != nil {
				m = c.message(long, topic(long), group(long))
				c.must(m.Validate(true, 0), "validate")
			}
			first := c.puts(box.Put{Mode: box.Queue, Message: m})[0]
			equal(c, first.Outcome, postroom.Accepted, "names at their limits are stored")
			longer := m
			longer.ID = strings.TrimSuffix(long, last(long)) + "y"
			equal(c, c.puts(box.Put{Mode: box.Queue, Message: longer})[0].Outcome, postroom.Accepted, "the last character counts")
			equal(c, c.puts(box.Put{Mode: box.Queue, Message: m})[0].Outcome, postroom.Duplicate, "a long name is the same as itself")
			rec, err := c.Store.Get(c.ctx, m.Key())
			c.must(err, "get")
			equal(c, rec.Topic+rec.Group, long+long, "long names come back whole")
		}
	}},
	{"NEVER-19_consumers_at_their_limit", func(c *suite) {
		long := c.as((c.consumer + strings.Repeat(".", 64))[:64])
		near := c.as(long.consumer[:63] + "-")
		long.receive("a")
		equal(c, near.check("a").Outcome, postroom.Accepted, "the last character counts")
		long.claimOne("a")
	}},
	{"NEVER-19_evil_texts", func(c *suite) {
		for i, text := range evil {
			id := number(i)
			c.receive(id, topic("t"), func(m *postroom.Message) {
				m.CorrelationID, m.CausationID = text, text
				m.Headers = map[string]string{text: text}
			})
		}
		for _, m := range c.claim(len(evil) + 1) {
			text := evil[atoi(m.ID)]
			equal(c, m.CorrelationID+m.CausationID, text+text, "correlating ids come back as they were sent")
			equal(c, m.Headers, map[string]string{text: text}, "headers come back as they were sent")
			c.settle(m.Lease, box.Fail, withError(text))
			equal(c, c.get(m.ID).LastError, text, "errors come back as they were")
		}
	}},
}

func quote(s string) string { return "\"" + s + "\"" }

func last(s string) string {
	r := []rune(s)
	return string(r[len(r)-1])
}

package storetest

import (
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

func (c *suite) stats() *box.Stats {
	c.Helper()
	s, err := ability[box.Counter](c).Stats(c.ctx, c.consumer)
	c.must(err, "stats")
	return s
}

// live gives the live counts of the case's consumer by topic and stage.
func (c *suite) live() map[string]int64 {
	c.Helper()
	counts := map[string]int64{}
	for _, l := range c.stats().Live {
		equal(c, l.Consumer, c.consumer, "only the consumer that was asked for")
		if l.N != 0 {
			counts[l.Topic+" "+l.Stage.String()] += l.N
		}
	}
	return counts
}

func (c *suite) total(name string) map[string]int64 {
	c.Helper()
	counts := map[string]int64{}
	for _, t := range c.stats().Totals {
		if t.Name == name && t.N != 0 {
			counts[t.Topic] += t.N
		}
	}
	return counts
}

var statsCases = []entry{
	{"OPS_live_messages_are_counted_by_topic_and_stage", func(c *suite) {
		equal(c, c.live(), map[string]int64{}, "nothing is there")
		c.check("seen")
		c.receive("a", topic("x"))
		c.receive("b", topic("x"))
		c.receive("c", topic("y"), dueAt(c.now().Add(time.Hour)))
		c.receive("d", topic("y"), group("g"))
		c.once("done")
		equal(c, c.live(), map[string]int64{" seen": 1, "x ready": 2, "y scheduled": 1, "y arrived": 1}, "done is not live")
		c.settle(c.claimWith(box.ClaimRequest{Limit: 1, ReadyOnly: true})[0].Lease, box.Fail)
		equal(c, c.live(), map[string]int64{" seen": 1, "x ready": 1, "x dead": 1, "y scheduled": 1, "y arrived": 1}, "counts follow")
	}},
	{"OPS_the_oldest_waiting_message", func(c *suite) {
		c.is(c.stats().OldestWaiting.IsZero(), "nothing waits")
		c.receive("later", dueAt(c.now().Add(100*time.Hour)))
		c.Advance(time.Hour)
		c.receive("a")
		c.Advance(time.Hour)
		c.receive("b")
		s := c.stats()
		c.near(s.OldestWaiting, s.Now.Add(-time.Hour), "it came an hour ago and could run")
		c.settle(c.claim(1)[0].Lease, box.Ack)
		c.near(c.stats().OldestWaiting, c.now(), "the next one came just now")
	}},
	{"OPS_totals_add_up", func(c *suite) {
		n := ability[box.Counter](c)
		count := func(topic, name string, by int64) box.Count {
			return box.Count{Consumer: c.consumer, Topic: topic, Name: name, N: by}
		}
		c.must(n.Count(c.ctx, nil), "count nothing")
		c.must(n.Count(c.ctx, []box.Count{count("x", box.CountDone, 3), count("y", box.CountDone, 1), count("x", box.CountDone, 2)}), "count")
		c.must(n.Count(c.ctx, []box.Count{count("x", box.CountDone, 10), count("x", box.CountDead, 1)}), "count")
		equal(c, c.total(box.CountDone), map[string]int64{"x": 15, "y": 1}, "totals add up, also of one kind twice in a call")
		equal(c, c.total(box.CountDead), map[string]int64{"x": 1}, "each name by itself")
	}},
	{"OPS_totals_outlive_cleanup", func(c *suite) {
		n := ability[box.Counter](c)
		c.once("a")
		c.must(n.Count(c.ctx, []box.Count{{Consumer: c.consumer, Topic: "topic", Name: box.CountDone, N: 1}}), "count")
		c.Advance(day)
		c.cleanup(box.CleanupRequest{Records: time.Hour})
		equal(c, c.total(box.CountDone), map[string]int64{"topic": 1}, "history is counted, not read")
	}},
	{"OPS_overview_of_all_consumers", func(c *suite) {
		second := c.as(c.consumer + "-2")
		c.receive("a")
		second.receive("a")
		s, err := ability[box.Counter](c).Stats(c.ctx, "")
		c.must(err, "stats")
		found := map[string]bool{}
		for _, l := range s.Live {
			if l.Stage == postroom.StageReady {
				found[l.Consumer] = true
			}
		}
		c.is(found[c.consumer] && found[second.consumer], "a consumer is missing: %v", s.Live)
		c.is(len(s.Tables) > 0, "there are no table sizes")
		c.near(s.Now, c.now(), "the clock is the store's")
	}},
	{"OPS_names_for_logs", func(c *suite) {
		c.is(ability[box.Namer](c).Name() != "", "the store has no name")
	}},
}

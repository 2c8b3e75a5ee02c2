package storetest

import (
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

var checkCases = []entry{
	{"IBX-001_source_and_id_are_the_key", func(c *suite) {
		c.once("a", from("one"))
		equal(c, c.check("a", from("one")).Outcome, postroom.Duplicate, "the same source and id is the same message")
		equal(c, c.check("a", from("two")).Outcome, postroom.Accepted, "another source is another message")
		equal(c, c.check("b", from("one")).Outcome, postroom.Accepted, "another id is another message")
	}},
	{"IBX-001_consumers_do_not_share_keys", func(c *suite) {
		second := c.as(c.consumer + "-2")
		c.once("a")
		equal(c, c.check("a").Outcome, postroom.Duplicate, "this consumer has processed it")
		equal(c, second.check("a").Outcome, postroom.Accepted, "each consumer processes a message once for itself")
		second.receive("b")
		c.claimNone("a consumer claims only its own messages")
		second.claimOne("b")
	}},
	{"IBX-002+IBX-003_done_is_processed", func(c *suite) {
		c.receive("a")
		c.settle(c.claimOne("a").Lease, box.Ack)
		res := c.check("a")
		equal(c, res.Outcome, postroom.Duplicate, "a message that is done was processed")
		equal(c, res.State, postroom.StateDone, "a lookup leaves a done message done")
	}},
	{"IBX-004_unknown_key_becomes_seen", func(c *suite) {
		res := c.check("a")
		equal(c, res.Outcome, postroom.Accepted, "an unknown message was not processed")
		equal(c, res.State, postroom.StateSeen, "the lookup remembers the key")
		c.is(res.Seq > 0, "the message got no number")
		rec := c.get("a")
		equal(c, rec.State, postroom.StateSeen, "the lookup remembers the key")
		equal(c, rec.Seq, res.Seq, "the result names the stored message")
		c.claimNone("a message that was only looked up has no content to handle")
	}},
	{"IBX-005_not_done_is_not_processed", func(c *suite) {
		c.check("seen")
		c.receive("waiting")
		c.receive("dead", topic("dying"))
		c.move(box.MarkDead, "dead")
		for _, id := range []string{"seen", "waiting", "dead"} {
			before := c.stands(id)
			equal(c, c.check(id).Outcome, postroom.Accepted, "only done is processed, not "+id)
			c.expect(id, before, "a lookup moves nothing")
		}
		c.settle(c.claimOne("waiting").Lease, box.Release)
		equal(c, c.check("waiting").State, postroom.StateProcessing, "the result gives the state")
	}},
	{"IBX-005+IBX-026_last_seen_follows_lookups_and_deliveries", func(c *suite) {
		c.check("seen")
		c.receive("waiting")
		c.once("done")
		c.Advance(time.Hour)
		for _, id := range []string{"seen", "waiting", "done"} {
			rec := c.get(id)
			c.near(rec.LastSeen, rec.FirstSeen, "nobody asked since, for "+id)
		}
		c.check("seen")
		c.receive("waiting")
		c.receive("done")
		for _, id := range []string{"seen", "waiting", "done"} {
			rec := c.get(id)
			c.near(rec.LastSeen, rec.FirstSeen.Add(time.Hour), "it came again an hour later: "+id)
		}
	}},
	{"IBX-006_a_batch_of_lookups_is_one_call", func(c *suite) {
		c.once("done")
		res := c.puts(
			c.putting(box.Check, "new", bare), c.putting(box.Check, "done", bare), c.putting(box.Check, "new", bare))
		equal(c, res[0].Outcome, postroom.Accepted, "the first is new")
		equal(c, res[1].Outcome, postroom.Duplicate, "the second is done")
		equal(c, res[2].Outcome, postroom.Accepted, "the third is known but not done")
		equal(c, res[2].Seq, res[0].Seq, "a key twice in a call is one message")
	}},
	{"IBX-007+IBX-129_hash_is_stored_and_verified", func(c *suite) {
		c.is(!c.check("a", hashed("one", "sha256")).Mismatch, "a first hash can't differ")
		c.is(!c.check("a", hashed("one", "sha256")).Mismatch, "the same hash does not differ")
		c.is(c.check("a", hashed("two", "sha256")).Mismatch, "another hash differs from the stored one")
		c.is(!c.check("a").Mismatch, "no hash, no verdict")
		c.is(!c.check("a", hashed("two", "md5")).Mismatch, "hashes of two algorithms can't be compared")
		rec := c.get("a")
		equal(c, string(rec.Hash), "one", "the first hash stays")
		equal(c, rec.HashAlg, "sha256", "and its algorithm")
	}},
	{"IBX-007_a_stored_null_adopts_the_first_hash", func(c *suite) {
		c.check("seen")
		c.receive("waiting")
		c.once("done")
		for _, id := range []string{"seen", "waiting", "done"} {
			c.is(!c.check(id, hashed("first", "sha256")).Mismatch, "%s had no hash to differ from", id)
			equal(c, string(c.get(id).Hash), "first", id+" adopts the first hash")
			c.is(c.check(id, hashed("second", "sha256")).Mismatch, "%s has a hash to differ from", id)
		}
	}},
	{"IBX-008_another_hash_is_reported_and_does_not_fail", func(c *suite) {
		c.once("done", hashed("one", "sha256"))
		res := c.receive("done", hashed("two", "sha256"))
		c.is(res.Mismatch, "a done message with another hash is reported")
		equal(c, res.Outcome, postroom.Duplicate, "and stays a duplicate")
		c.receive("waiting", hashed("one", "sha256"))
		res = c.receive("waiting", hashed("two", "sha256"))
		c.is(res.Mismatch, "a waiting message with another hash is reported")
		equal(c, res.Outcome, postroom.Replaced, "another hash is another content")
		equal(c, string(c.get("waiting").Hash), "two", "the hash of the new content is stored")
	}},
	{"IBX-114+IBX-116+IBX-117_migrating_again_does_nothing", func(c *suite) {
		m := ability[box.Migrator](c)
		c.receive("a")
		errs := make(chan error)
		for range 4 {
			go func() { errs <- m.Migrate(c.ctx) }()
		}
		for range 4 {
			c.must(<-errs, "migrate, four at once")
		}
		c.claimOne("a")
	}},
}

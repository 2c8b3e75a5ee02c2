package storetest

import (
	"errors"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

func (c *suite) begin() box.Transaction {
	c.Helper()
	tx, err := c.Store.Begin(c.ctx)
	c.must(err, "begin")
	c.Cleanup(func() { _ = tx.Rollback(c.ctx) })
	return tx
}

func (c *suite) putIn(tx postroom.Tx, puts ...box.Put) []box.PutResult {
	c.Helper()
	res, err := c.Store.Put(c.ctx, tx, puts)
	c.must(err, "put in a transaction")
	return res
}

func (c *suite) commit(tx box.Transaction) {
	c.Helper()
	c.must(tx.Commit(c.ctx), "commit")
}

func (c *suite) rollback(tx box.Transaction) {
	c.Helper()
	c.must(tx.Rollback(c.ctx), "rollback")
}

type foreignTx struct{}

func (foreignTx) PostroomTx() {}

var txCases = []entry{
	{"IBX-102+P2_commit_makes_visible", func(c *suite) {
		tx := c.begin()
		res := c.putIn(tx, c.putting(box.Queue, "queued"), c.putting(box.Once, "once"), c.putting(box.Check, "seen", bare))
		for i := range res {
			equal(c, res[i].Outcome, postroom.Accepted, "each is new")
		}
		for _, id := range []string{"queued", "once", "seen"} {
			c.expect(id, "none", "nobody else sees it before the commit")
		}
		c.commit(tx)
		c.expect("queued", "ready", "it was committed")
		c.expect("once", "done", "it was committed")
		c.expect("seen", "seen", "it was committed")
		c.must(tx.Rollback(c.ctx), "rollback after commit")
		c.claimOne("queued")
	}},
	{"IBX-102+P2_rollback_leaves_nothing", func(c *suite) {
		c.receive("known", payload("old"))
		tx := c.begin()
		c.putIn(tx, c.putting(box.Queue, "a"), c.putting(box.Once, "b"), c.putting(box.Queue, "known", payload("new")))
		c.rollback(tx)
		c.expect("a", "none", "it was rolled back")
		c.expect("b", "none", "it was rolled back")
		rec := c.get("known")
		equal(c, string(rec.Payload), "old", "the replacement was rolled back")
		equal(c, rec.Revision, 1, "and its revision")
		equal(c, c.receive("a").Outcome, postroom.Accepted, "it is as new as before")
	}},
	{"P2_once_rolled_back_runs_again", func(c *suite) {
		tx := c.begin()
		equal(c, c.putIn(tx, c.putting(box.Once, "a"))[0].Outcome, postroom.Accepted, "it is to run")
		c.rollback(tx)
		tx = c.begin()
		equal(c, c.putIn(tx, c.putting(box.Once, "a"))[0].Outcome, postroom.Accepted, "its effect was rolled back with it")
		c.commit(tx)
		equal(c, c.once("a").Outcome, postroom.Duplicate, "its effect was committed with it")
	}},
	{"P2_a_transaction_sees_its_own_writes", func(c *suite) {
		tx := c.begin()
		equal(c, c.putIn(tx, c.putting(box.Once, "a"))[0].Outcome, postroom.Accepted, "it is new")
		equal(c, c.putIn(tx, c.putting(box.Once, "a"))[0].Outcome, postroom.Duplicate, "the same transaction has processed it")
		equal(c, c.putIn(tx, c.putting(box.Queue, "b"))[0].Outcome, postroom.Accepted, "it is new")
		equal(c, c.putIn(tx, c.putting(box.Queue, "b"))[0].Outcome, postroom.Duplicate, "the same transaction has received it")
		c.commit(tx)
		c.claimOne("b")
	}},
	{"P2_a_transaction_is_usable_after_a_duplicate", func(c *suite) {
		if c.DuplicateBreaksTx {
			c.Skip("the store does not promise it")
		}
		c.once("a")
		c.receive("b")
		tx := c.begin()
		equal(c, c.putIn(tx, c.putting(box.Once, "a"))[0].Outcome, postroom.Duplicate, "it was processed before")
		equal(c, c.putIn(tx, c.putting(box.Queue, "b"))[0].Outcome, postroom.Duplicate, "it was received before")
		equal(c, c.putIn(tx, c.putting(box.Once, "c"))[0].Outcome, postroom.Accepted, "the transaction goes on")
		c.commit(tx)
		c.expect("c", "done", "and commits")
	}},
	{"IBX-026_a_duplicate_in_a_transaction_does_not_touch_last_seen", func(c *suite) {
		c.once("a")
		c.Advance(time.Hour)
		tx := c.begin()
		c.putIn(tx, c.putting(box.Queue, "a"))
		c.commit(tx)
		rec := c.get("a")
		c.near(rec.LastSeen, rec.FirstSeen, "a caller's transaction must not lock what it only looks at")
	}},
	{"NEVER-04_a_second_writer_of_a_key_waits_for_the_commit", func(c *suite) {
		tx := c.begin()
		c.putIn(tx, c.putting(box.Once, "a"))
		second := make(chan answered, 1)
		go func() {
			res, err := c.Store.Put(c.ctx, nil, []box.Put{c.putting(box.Once, "a")})
			second <- answered{res, err}
		}()
		c.commit(tx)
		a := <-second
		if c.DuplicateBreaksTx && errors.Is(a.err, postroom.ErrRetry) {
			return
		}
		c.must(a.err, "the second writer")
		equal(c, a.res[0].Outcome, postroom.Duplicate, "the first one's effect was committed")
	}},
	{"NEVER-04_a_second_writer_of_a_key_proceeds_after_a_rollback", func(c *suite) {
		tx := c.begin()
		c.putIn(tx, c.putting(box.Once, "a"))
		second := make(chan answered, 1)
		go func() {
			res, err := c.Store.Put(c.ctx, nil, []box.Put{c.putting(box.Once, "a")})
			second <- answered{res, err}
		}()
		c.rollback(tx)
		a := <-second
		if c.DuplicateBreaksTx && errors.Is(a.err, postroom.ErrRetry) {
			return
		}
		c.must(a.err, "the second writer")
		equal(c, a.res[0].Outcome, postroom.Accepted, "the first one's effect was rolled back")
	}},
	{"P2+IBX-044_settling_commits_with_the_transaction", func(c *suite) {
		c.receive("a")
		m := c.claimOne("a")
		tx := c.begin()
		res, err := c.Store.Settle(c.ctx, tx, []box.Settlement{{Lease: m.Lease, Verb: box.Ack}})
		c.must(err, "settle in a transaction")
		c.is(res[0].Applied, "the lease is current")
		c.expect("a", "leased", "it is not done before the commit")
		c.commit(tx)
		c.expect("a", "done", "it is done with the commit")
	}},
	{"P2+NEVER-01_settling_is_undone_with_the_transaction", func(c *suite) {
		c.receive("a")
		m := c.claimOne("a")
		tx := c.begin()
		_, err := c.Store.Settle(c.ctx, tx, []box.Settlement{{Lease: m.Lease, Verb: box.Ack}})
		c.must(err, "settle in a transaction")
		c.putIn(tx, c.putting(box.Queue, "follow-up"))
		c.rollback(tx)
		c.expect("a", "leased", "effect and ack were rolled back together")
		c.expect("follow-up", "none", "and what it sent")
		c.settle(m.Lease, box.Ack)
	}},
	{"P3+NEVER-03_a_stale_lease_settles_nothing_in_a_transaction", func(c *suite) {
		c.receive("a")
		old := c.claimOne("a").Lease
		c.Advance(leaseTime + time.Minute)
		c.reap()
		current := c.claimOne("a").Lease
		tx := c.begin()
		res, err := c.Store.Settle(c.ctx, tx, []box.Settlement{{Lease: old, Verb: box.Ack}})
		c.must(err, "settle in a transaction")
		c.is(!res[0].Applied, "a stale lease was settled")
		c.rollback(tx)
		c.settle(current, box.Ack)
	}},
	{"LANE+P2_a_head_settled_in_a_transaction_vacates_its_lane", func(c *suite) {
		c.inGroup("g", "a", "b")
		m := c.claimOne("a")
		tx := c.begin()
		_, err := c.Store.Settle(c.ctx, tx, []box.Settlement{{Lease: m.Lease, Verb: box.Ack}})
		c.must(err, "settle in a transaction")
		c.commit(tx)
		c.runsInOrder("b")
	}},
	{"LANE+P2_a_group_received_in_a_transaction_keeps_its_order", func(c *suite) {
		tx := c.begin()
		c.putIn(tx, c.putting(box.Queue, "z", group("g")))
		c.putIn(tx, c.putting(box.Queue, "m", group("g")), c.putting(box.Queue, "a", group("g")))
		c.commit(tx)
		c.runsInOrder("z", "m", "a")
	}},
	{"NEVER-08_rolled_back_numbers_hold_nothing_up", func(c *suite) {
		c.receive("a")
		tx := c.begin()
		c.putIn(tx, c.putting(box.Queue, "gone"), c.putting(box.Queue, "gone too"))
		c.rollback(tx)
		c.receive("b")
		equal(c, ids(c.claim(10)), []string{"a", "b"}, "nothing waits for a number that was rolled back")
	}},
	{"IBX-102_foreign_transactions_are_refused", func(c *suite) {
		_, err := c.Store.Put(c.ctx, foreignTx{}, []box.Put{c.putting(box.Queue, "a")})
		c.fails(err, postroom.ErrForeignTx, "put with a transaction of another kind")
		_, err = c.Store.Settle(c.ctx, foreignTx{}, []box.Settlement{{Lease: postroom.Lease{Seq: 1, Owner: worker, Fence: 1}, Verb: box.Ack}})
		c.fails(err, postroom.ErrForeignTx, "settle with a transaction of another kind")
		c.expect("a", "none", "nothing was stored")
	}},
}

type answered struct {
	res []box.PutResult
	err error
}

package storetest

import (
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// out gives the same case on the table set for what leaves.
func (c *suite) out() *suite {
	c.Helper()
	store, err := ability[box.Outboxer](c).Outbox()
	c.must(err, "open the outbox")
	d := *c
	d.Store = store
	return &d
}

func forget(s *box.Settlement) { s.Forget = true }

var outboxCases = []entry{
	{"P5_an_outbox_is_a_set_of_its_own", func(c *suite) {
		o := c.out()
		c.receive("a")
		o.expect("a", "none", "what arrives is not what leaves")
		equal(c, o.receive("a").Outcome, postroom.Accepted, "the same key is new there")
		o.settle(o.claimOne("a").Lease, box.Ack)
		c.claimOne("a")
	}},
	{"P5_one_transaction_reaches_both_sets", func(c *suite) {
		o := c.out()
		c.receive("in")
		lease := c.claimOne("in").Lease
		for _, commit := range []bool{false, true} {
			tx := c.begin()
			o.putIn(tx, o.putting(box.Queue, "out-1"), o.putting(box.Queue, "out-2", group("g")))
			res, err := c.Store.Settle(c.ctx, tx, []box.Settlement{{Lease: lease, Verb: box.Ack}})
			c.must(err, "settle in a transaction")
			c.is(res[0].Applied, "the lease is current")
			if !commit {
				c.rollback(tx)
				o.expect("out-1", "none", "a rollback leaves nothing")
				o.expect("out-2", "none", "a rollback leaves nothing")
				c.expect("in", "leased", "a rollback leaves the lease")
				continue
			}
			c.commit(tx)
			c.expect("in", "done", "all commits together")
			equal(c, ids(o.claim(10)), []string{"out-1", "out-2"}, "all commits together")
		}
	}},
	{"P5_a_transaction_of_the_outbox_reaches_both_sets", func(c *suite) {
		o := c.out()
		tx := o.begin()
		o.putIn(tx, o.putting(box.Queue, "a"))
		c.putIn(tx, c.putting(box.Queue, "a"))
		o.commit(tx)
		o.claimOne("a")
		c.claimOne("a")
	}},
	{"P5_an_ack_that_forgets_leaves_nothing", func(c *suite) {
		c.inGroup("g", "a", "b")
		equal(c, c.settle(c.claimOne("a").Lease, box.Ack, forget).State, postroom.StateDone, "the run succeeded")
		c.expect("a", "none", "nothing of it is left")
		c.settle(c.claimOne("b").Lease, box.Ack)
		equal(c, c.receive("a").Outcome, postroom.Accepted, "its key is unknown again")
	}},
	{"P5+NEVER-09_put_and_move_keep_a_suspect_that_is_never_given_up", func(c *suite) {
		c.receiveAll("a", "b")
		for i := range 2 * (box.MaxLost - 1) {
			if i < box.SuspectAt {
				c.lose(false, box.ReapRules{NeverDead: true})
			} else if i >= 2*box.SuspectAt {
				c.lose(true, box.ReapRules{NeverDead: true})
			}
		}
		for range 2 {
			c.claimWith(box.ClaimRequest{Limit: 1, Suspect: true})
		}
		c.Advance(leaseTime + time.Minute)
		p := c.putting(box.Queue, "a")
		p.Rules.NeverDead = true
		c.is(c.puts(p)[0].Died == "", "put ends an expired lease by the rules it is given")
		res := c.move(box.MarkProcessing, "b", func(m *box.Move) { m.Rules.NeverDead = true })
		c.is(res.Died == "" && res.Lost, "move ends an expired lease by the rules it is given")
		c.expect("a", "suspect", "it is held, by option")
		c.expect("b", "suspect", "it is held, by option")
	}},
}

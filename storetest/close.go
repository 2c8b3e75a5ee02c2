package storetest

import (
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// closeCases close the store that they share, so that only one can be there.
var closeCases = []entry{
	{"P1_a_closed_store_refuses_and_says_so", func(c *suite) {
		c.must(c.Store.Close(), "close")
		calls := map[string]func() error{
			"put": func() error {
				_, err := c.Store.Put(c.ctx, nil, []box.Put{c.putting(box.Queue, "a")})
				return err
			},
			"claim": func() error {
				_, err := c.Store.Claim(c.ctx, box.ClaimRequest{Consumer: c.consumer, Owner: worker, Lease: leaseTime, Limit: 1})
				return err
			},
			"settle": func() error {
				_, err := c.Store.Settle(c.ctx, nil, []box.Settlement{{Lease: postroom.Lease{Seq: 1, Owner: worker, Fence: 1}, Verb: box.Ack}})
				return err
			},
			"extend": func() error {
				_, err := c.Store.Extend(c.ctx, []postroom.Lease{{Seq: 1, Owner: worker, Fence: 1}}, time.Minute)
				return err
			},
			"move": func() error {
				_, err := c.Store.Move(c.ctx, []box.Move{{Key: c.key("a"), Action: box.Requeue}})
				return err
			},
			"get": func() error {
				_, err := c.Store.Get(c.ctx, c.key("a"))
				return err
			},
			"begin": func() error {
				_, err := c.Store.Begin(c.ctx)
				return err
			},
		}
		for name, call := range calls {
			c.fails(call(), postroom.ErrClosed, name+" after close")
		}
		c.must(c.Store.Close(), "close again")
	}},
}

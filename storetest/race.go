package storetest

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

const (
	callers = 16
	// latest is when a claim must have found what it passed over before.
	latest = 20 * time.Second
)

// together runs f by many callers at once.
func together(f func(caller int)) {
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

var raceCases = []entry{
	{"IBX-006+IBX-014_one_of_many_receivers_is_accepted", func(c *suite) {
		for round := range 5 {
			id := number(round)
			var accepted, duplicate atomic.Int32
			together(func(int) {
				res, err := c.Store.Put(c.ctx, nil, []box.Put{c.putting(box.Queue, id)})
				switch {
				case err != nil:
					c.Errorf("put: %v", err)
				case res[0].Outcome == postroom.Accepted:
					accepted.Add(1)
				case res[0].Outcome == postroom.Duplicate:
					duplicate.Add(1)
				}
			})
			equal(c, [2]int32{accepted.Load(), duplicate.Load()}, [2]int32{1, callers - 1}, "one is new, all others are duplicates")
		}
		equal(c, len(c.claim(100)), 5, "each is one message")
	}},
	{"P2+NEVER-04_one_of_many_runs_once", func(c *suite) {
		var ran atomic.Int32
		together(func(int) {
			res, err := c.Store.Put(c.ctx, nil, []box.Put{c.putting(box.Once, "a")})
			if err != nil {
				c.Errorf("put: %v", err)
			} else if res[0].Outcome == postroom.Accepted {
				ran.Add(1)
			}
		})
		equal(c, ran.Load(), 1, "it runs once")
	}},
	{"NEVER-22_one_of_many_guards", func(c *suite) {
		var ran, told atomic.Int32
		together(func(int) {
			res, err := c.Store.Put(c.ctx, nil, []box.Put{c.putting(box.Guard, "a")})
			switch {
			case err != nil:
				c.Errorf("put: %v", err)
			case res[0].Err != nil:
				told.Add(1)
			default:
				ran.Add(1)
			}
		})
		equal(c, [2]int32{ran.Load(), told.Load()}, [2]int32{1, callers - 1}, "one runs, all others are told in progress")
	}},
	{"IBX-104_crossed_batches_do_not_deadlock", func(c *suite) {
		var accepted atomic.Int32
		together(func(caller int) {
			var puts []box.Put
			for _, i := range rand.Perm(20) {
				puts = append(puts, c.putting(box.Queue, number(i)))
			}
			res, err := c.Store.Put(c.ctx, nil, puts)
			if err != nil {
				c.Errorf("caller %d: %v", caller, err)
			}
			for _, r := range res {
				if r.Outcome == postroom.Accepted {
					accepted.Add(1)
				}
			}
		})
		equal(c, accepted.Load(), 20, "each message is accepted once, whatever the order of the batches")
	}},
	{"IBX-030+IBX-039+IBX-103+IBX-105+IBX-106+NEVER-07_many_claimers", func(c *suite) {
		const messages = 300
		var puts []box.Put
		for i := range messages {
			puts = append(puts, c.putting(box.Queue, number(i)))
		}
		c.puts(puts...)
		var holders [messages]atomic.Int32
		var claimed atomic.Int32
		take := func(m *postroom.Message) {
			claimed.Add(1)
			if holders[atoi(m.ID)].Add(1) > 1 {
				c.Errorf("message %s was claimed twice", m.ID)
			}
		}
		together(func(caller int) {
			for idle := 0; idle < 3; {
				got, err := c.Store.Claim(c.ctx, box.ClaimRequest{Consumer: c.consumer, Owner: "w" + number(caller), Lease: leaseTime, Limit: 7})
				if err != nil {
					c.Errorf("claim: %v", err)
					return
				}
				if len(got) > 7 {
					c.Errorf("claimed %d, more than the 7 asked for", len(got))
				}
				if len(got) == 0 {
					idle++
				}
				for _, m := range got {
					take(m)
				}
			}
		})
		c.sweep(func() bool { return claimed.Load() == messages }, take)
		equal(c, claimed.Load(), messages, "each message is claimed once")
	}},
	{"IBX-105+P3+P4_claims_and_settlements_race", func(c *suite) {
		const messages = 120
		var puts []box.Put
		for i := range messages {
			puts = append(puts, c.putting(box.Queue, number(i)))
		}
		c.puts(puts...)
		var running [messages]atomic.Int32
		var acked atomic.Int32
		together(func(caller int) {
			for idle := 0; idle < 3; {
				got, err := c.Store.Claim(c.ctx, box.ClaimRequest{Consumer: c.consumer, Owner: "w" + number(caller), Lease: leaseTime, Limit: 5})
				if err != nil {
					c.Errorf("claim: %v", err)
					return
				}
				if len(got) == 0 {
					idle++
				}
				var ends []box.Settlement
				for _, m := range got {
					if running[atoi(m.ID)].Add(1) > 1 {
						c.Errorf("message %s runs twice at once", m.ID)
					}
					verb := box.Ack
					if m.Attempt == 0 && rand.IntN(3) == 0 {
						verb = box.Release
					}
					ends = append(ends, box.Settlement{Lease: m.Lease, Verb: verb})
				}
				for _, m := range got {
					running[atoi(m.ID)].Add(-1)
				}
				for i, s := range c.settleRacing(ends) {
					if s.Applied && ends[i].Verb == box.Ack {
						acked.Add(1)
					}
				}
			}
		})
		c.sweep(func() bool { return acked.Load() == messages }, func(m *postroom.Message) {
			c.settle(m.Lease, box.Ack)
			acked.Add(1)
		})
		equal(c, acked.Load(), messages, "each message is acked once and none is lost")
	}},
	{"LANE+NEVER-16_groups_race", func(c *suite) {
		c.groupsRace(func(caller int, ends []box.Settlement) ([]box.Settled, []*postroom.Message, error) {
			settled := c.settleRacing(ends)
			got, err := c.Store.Claim(c.ctx, c.racing(caller))
			return settled, got, err
		})
	}},
	{"LANE+NEVER-16_groups_race_through_exchanges", func(c *suite) {
		ex, ok := c.Store.(box.Exchanger)
		if !ok || !ex.Exchanges() {
			return // there is only the way of the case before
		}
		c.groupsRace(func(caller int, ends []box.Settlement) ([]box.Settled, []*postroom.Message, error) {
			req := c.racing(caller)
			if len(ends) == 0 {
				got, err := c.Store.Claim(c.ctx, req)
				return nil, got, err
			}
			req.ReadyOnly = true
			settled, got, err := ex.Exchange(c.ctx, ends, req)
			for i := range settled {
				if settled[i].Locked {
					settled[i] = c.settleRacing(ends[i : i+1])[0]
				}
			}
			return settled, got, err
		})
	}},
	{"IBX-002+NEVER-11_cleanup_races_with_intake", func(c *suite) {
		for i := range 50 {
			c.once(number(i))
		}
		c.Advance(day)
		var anew [50]atomic.Bool
		together(func(caller int) {
			if caller%4 == 0 {
				for range 5 {
					if _, err := c.sweeper().Cleanup(c.ctx, box.CleanupRequest{Consumer: c.consumer, Records: 1, Limit: 7}); err != nil {
						c.Errorf("cleanup: %v", err)
					}
				}
				return
			}
			for i := range 50 {
				res, err := c.Store.Put(c.ctx, nil, []box.Put{c.putting(box.Queue, number(i))})
				if err != nil {
					c.Errorf("put: %v", err)
				} else if res[0].Outcome == postroom.Accepted {
					anew[i].Store(true)
				}
			}
		})
		for i := range 50 {
			if at := c.stands(number(i)); anew[i].Load() {
				c.is(at == "ready", "message %d is %s: it was received anew, and is no business of a cleanup", i, at)
			} else {
				c.is(at == "done" || at == "none", "message %d is %s: it is remembered, or forgotten after it was last received", i, at)
			}
		}
	}},
}

// racing is the claim of one of many callers.
func (c *suite) racing(caller int) box.ClaimRequest {
	return box.ClaimRequest{Consumer: c.consumer, Owner: "w" + number(caller), Lease: leaseTime, Limit: 2}
}

// groupsRace lets many callers work off groups with next, which ends leases and
// claims.
func (c *suite) groupsRace(next func(caller int, ends []box.Settlement) ([]box.Settled, []*postroom.Message, error)) {
	c.Helper()
	const groups, each = 6, 15
	var puts []box.Put
	for i := range groups * each {
		puts = append(puts, c.putting(box.Queue, number(i), group("g"+number(i%groups))))
	}
	c.puts(puts...)
	var running [groups]atomic.Int32
	var mu sync.Mutex
	order := make([][]int, groups)
	var done atomic.Int32
	together(func(caller int) {
		var ends []box.Settlement
		for idle := 0; idle < 200 && (done.Load() < groups*each || len(ends) > 0); {
			settled, got, err := next(caller, ends)
			if err != nil {
				c.Errorf("settle and claim: %v", err)
				return
			}
			for i := range settled {
				c.is(settled[i].Applied, "a current lease was not settled: %+v", ends[i])
			}
			if len(got) == 0 {
				idle++
			}
			ends = nil
			for _, m := range got {
				g := atoi(m.Group[1:])
				if running[g].Add(1) > 1 {
					c.Errorf("two of group %s run at once", m.Group)
				}
				verb := box.Ack
				if rand.IntN(4) == 0 {
					verb = box.Release
				} else {
					mu.Lock()
					order[g] = append(order[g], atoi(m.ID))
					mu.Unlock()
					done.Add(1)
				}
				running[g].Add(-1)
				ends = append(ends, box.Settlement{Lease: m.Lease, Verb: verb, Grouped: true})
			}
		}
	})
	c.sweep(func() bool { return done.Load() == groups*each }, func(m *postroom.Message) {
		g := atoi(m.Group[1:])
		order[g] = append(order[g], atoi(m.ID))
		done.Add(1)
		c.settle(m.Lease, box.Ack)
	})
	for g := range groups {
		equal(c, len(order[g]), each, "group g"+number(g)+" is not stuck")
		for i, n := range order[g] {
			if n != g+i*groups {
				c.Errorf("group g%d ran in the order %v", g, order[g])
				break
			}
		}
	}
}

// sweep takes what many callers left, until all is there, and expects that this is
// all: a claim may pass over for some seconds what another held just then.
func (c *suite) sweep(all func() bool, take func(*postroom.Message)) {
	c.Helper()
	for begun := time.Now(); !all() && time.Since(begun) < latest; {
		for _, m := range c.claim(100) {
			take(m)
		}
	}
	c.claimNone("all have been taken")
}

// settleRacing settles until no row is locked by another.
func (c *suite) settleRacing(ends []box.Settlement) []box.Settled {
	out := make([]box.Settled, len(ends))
	todo := make([]int, len(ends))
	for i := range ends {
		todo[i] = i
	}
	for len(todo) > 0 {
		var batch []box.Settlement
		for _, i := range todo {
			batch = append(batch, ends[i])
		}
		res, err := c.Store.Settle(c.ctx, nil, batch)
		if err != nil {
			c.Errorf("settle: %v", err)
			return out
		}
		var again []int
		for n, i := range todo {
			out[i] = res[n]
			if res[n].Locked {
				again = append(again, i)
			}
		}
		todo = again
	}
	return out
}

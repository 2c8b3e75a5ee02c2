package storetest

import (
	"strings"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

var settleCases = []entry{
	{"IBX-044+IBX-047+IBX-049_ack_is_done", func(c *suite) {
		c.receive("a")
		m := c.claimOne("a")
		equal(c, c.settle(m.Lease, box.Ack).State, postroom.StateDone, "the run succeeded")
		rec := c.get("a")
		equal(c, rec.State, postroom.StateDone, "the run succeeded")
		equal(c, rec.Lease, postroom.Lease{}, "nobody has it any more")
		equal(c, rec.Done.Runs, 1, "it ran once")
		equal(c, rec.Done.Handler, "handler", "the handler is on record")
		c.near(rec.Done.At, c.now(), "the outcome has its time")
		c.is(!rec.Done.Discarded && !rec.Done.Superseded && !rec.Done.Purged, "nothing else is said of it: %+v", rec.Done)
		c.Advance(time.Hour)
		c.claimNone("a done message is never claimed")
	}},
	{"IBX-044_a_discarding_ack_says_so", func(c *suite) {
		c.receive("a")
		c.settle(c.claimOne("a").Lease, box.Ack, func(s *box.Settlement) { s.Discarded, s.Note = true, "not for us" })
		rec := c.get("a")
		equal(c, rec.State, postroom.StateDone, "discarded is done")
		c.is(rec.Done.Discarded, "and marked so")
		equal(c, rec.Done.Note, "not for us", "with the reason")
	}},
	{"IBX-045+IBX-054+IBX-062+P3_only_the_owner_settles", func(c *suite) {
		c.receive("a")
		m := c.claimOne("a")
		stolen := m.Lease
		stolen.Owner = other
		for _, verb := range []box.Verb{box.Ack, box.Abandon, box.Fail, box.Release, box.Expire, box.Park} {
			c.ignored(stolen, verb, "the lease is another owner's")
		}
		c.expect("a", "leased", "a foreign lease changes nothing")
		c.settle(m.Lease, box.Ack)
	}},
	{"IBX-046+IBX-055+IBX-063_unknown_leases_are_ignored_within_a_batch", func(c *suite) {
		c.receiveAll("a", "b")
		got := c.claim(10)
		unknown := got[0].Lease
		unknown.Seq += 1 << 40
		res := c.settleAll(
			box.Settlement{Lease: unknown, Verb: box.Ack},
			box.Settlement{Lease: got[0].Lease, Verb: box.Ack},
			box.Settlement{Lease: got[0].Lease, Verb: box.Ack},
			box.Settlement{Lease: postroom.Lease{}, Verb: box.Fail},
			box.Settlement{Lease: got[1].Lease, Verb: box.Abandon},
		)
		want := []bool{false, true, false, false, true}
		for i := range want {
			equal(c, res[i].Applied, want[i], "the result says which took effect, at "+number(i))
		}
	}},
	{"IBX-046_results_run_parallel_to_what_ends_each_lease", func(c *suite) {
		c.receiveAll("a", "b", "c", "d", "e")
		got := c.claim(10)
		res := c.settleAll(
			box.Settlement{Lease: got[0].Lease, Verb: box.Release},
			box.Settlement{Lease: got[1].Lease, Verb: box.Ack},
			box.Settlement{Lease: got[2].Lease, Verb: box.Fail, Error: "no"},
			box.Settlement{Lease: got[3].Lease, Verb: box.Ack, Handler: "another"},
			box.Settlement{Lease: got[4].Lease, Verb: box.Ack},
		)
		want := []postroom.State{postroom.StateProcessing, postroom.StateDone, postroom.StateDead, postroom.StateDone, postroom.StateDone}
		for i := range want {
			equal(c, res[i].Applied, true, "all took effect, at "+number(i))
			equal(c, res[i].State, want[i], "the state is that of the message, at "+number(i))
			equal(c, c.get(got[i].ID).State, want[i], "as it is stored, at "+number(i))
		}
	}},
	{"IBX-048+IBX-059+IBX-066_empty_calls_do_nothing", func(c *suite) {
		settled, err := c.Store.Settle(c.ctx, nil, nil)
		c.must(err, "settle nothing")
		extended, err := c.Store.Extend(c.ctx, nil, time.Minute)
		c.must(err, "extend nothing")
		put, err := c.Store.Put(c.ctx, nil, nil)
		c.must(err, "put nothing")
		moved, err := c.Store.Move(c.ctx, nil)
		c.must(err, "move nothing")
		equal(c, len(settled)+len(extended)+len(put)+len(moved), 0, "no request, no result")
	}},
	{"IBX-050+IBX-051+IBX-057_abandon_gives_back_and_counts", func(c *suite) {
		c.receive("a")
		equal(c, c.settle(c.claimOne("a").Lease, box.Abandon, withError("it rained")).State, postroom.StateProcessing, "it waits for its next run")
		rec := c.get("a")
		equal(c, rec.Stage, postroom.StageScheduled, "after the backoff")
		equal(c, rec.Attempt, 1, "the run counts")
		equal(c, rec.LastError, "it rained", "the error is on record")
		equal(c, rec.Lease, postroom.Lease{}, "nobody has it")
		c.Advance(time.Minute)
		m := c.claimOne("a")
		equal(c, m.Attempt, 1, "the next run knows its attempt")
		equal(c, m.LastError, "it rained", "and what the last one ended with")
		c.settle(m.Lease, box.Ack)
		equal(c, c.get("a").Done.Runs, 2, "both runs are counted in the outcome")
	}},
	{"IBX-053+IBX-056_abandon_with_a_delay", func(c *suite) {
		c.receive("a")
		c.settle(c.claimOne("a").Lease, box.Abandon, after(3*time.Hour))
		c.near(c.get("a").NextAt, c.now().Add(3*time.Hour), "the delay takes the backoff's place")
		c.Advance(2 * time.Hour)
		c.claimNone("the delay is not over")
		c.Advance(2 * time.Hour)
		c.claimOne("a")
	}},
	{"IBX-060+IBX-061+IBX-064+IBX-065_fail_is_dead", func(c *suite) {
		c.receive("a")
		equal(c, c.settle(c.claimOne("a").Lease, box.Fail, withError("hopeless")).State, postroom.StateDead, "it failed for good")
		rec := c.get("a")
		equal(c, rec.State, postroom.StateDead, "it failed for good")
		equal(c, rec.LastError, "hopeless", "the error is on record")
		equal(c, rec.Attempt, 1, "the run counts")
		equal(c, rec.Lease, postroom.Lease{}, "nobody has it")
		c.Advance(24 * time.Hour)
		c.claimNone("a dead message is never claimed")
	}},
	{"IBX-061_long_errors_are_cut", func(c *suite) {
		c.receiveAll("a", "b")
		for _, m := range c.claim(10) {
			text := strings.Repeat("ü", 1500) + "\x00\xff"
			verb := map[string]box.Verb{"a": box.Fail, "b": box.Abandon}[m.ID]
			c.settle(m.Lease, verb, withError(text))
			equal(c, c.get(m.ID).LastError, strings.Repeat("ü", 1000), "2,000 bytes on a rune boundary are kept")
		}
	}},
	{"TABLE_release_costs_nothing", func(c *suite) {
		c.receive("a")
		c.settle(c.claimOne("a").Lease, box.Release)
		rec := c.get("a")
		equal(c, rec.Stage, postroom.StageReady, "it was not run, and is ready")
		equal(c, rec.Attempt, 0, "no attempt was spent")
		c.settle(c.claimOne("a").Lease, box.Release, after(time.Hour))
		c.expect("a", "scheduled", "a release may hold it back")
		c.claimNone("a release may hold it back")
		c.Advance(2 * time.Hour)
		equal(c, c.claimOne("a").Attempt, 0, "no attempt was spent")
	}},
	{"TABLE_a_released_message_goes_to_the_end", func(c *suite) {
		c.receiveAll("a", "b")
		c.settle(c.claim(1)[0].Lease, box.Release)
		equal(c, ids(c.claim(10)), []string{"b", "a"}, "what becomes ready anew takes a new turn")
	}},
	{"TABLE+P3_extend_renews_a_current_lease", func(c *suite) {
		c.receiveAll("a", "b")
		got := c.claim(10)
		stale := got[1].Lease
		stale.Fence--
		c.Advance(leaseTime / 2)
		res, err := c.Store.Extend(c.ctx, []postroom.Lease{got[0].Lease, stale}, leaseTime)
		c.must(err, "extend")
		c.is(res[0].Extended, "a current lease was not extended")
		c.near(res[0].Until, c.now().Add(leaseTime), "it ends that long from now")
		c.is(!res[1].Extended, "a lease with a stale fence was extended")
		c.Advance(leaseTime * 3 / 4)
		equal(c, len(c.reap()), 1, "only the lease that was not extended has expired")
		c.expect("a", "leased", "it was extended")
		c.settle(got[0].Lease, box.Ack)
	}},
	{"IBX-045+NEVER-03+P3_a_stale_fence_changes_nothing", func(c *suite) {
		c.receive("a")
		old := c.claimOne("a").Lease
		c.Advance(leaseTime + time.Minute)
		c.reap()
		current := c.claimOne("a").Lease
		equal(c, current.Owner, old.Owner, "the same worker claims it again")
		for _, verb := range []box.Verb{box.Ack, box.Abandon, box.Fail, box.Release} {
			c.ignored(old, verb, "the message was claimed again since")
		}
		ext, err := c.Store.Extend(c.ctx, []postroom.Lease{old}, time.Hour)
		c.must(err, "extend")
		c.is(!ext[0].Extended, "a stale lease was extended")
		c.settle(current, box.Ack)
	}},
	{"IBX-045+P3_a_late_ack_counts_until_the_message_is_reaped", func(c *suite) {
		c.receiveAll("acked", "reaped")
		got := c.claim(10)
		c.Advance(leaseTime + time.Hour)
		c.settle(got[0].Lease, box.Ack)
		c.expect("acked", "done", "nobody had taken it over")
		c.reap()
		c.ignored(got[1].Lease, box.Ack, "the lease was reaped")
		c.expect("reaped", "ready", "it waits for another run")
	}},
	{"IBX-056+P3_a_released_lease_is_gone", func(c *suite) {
		c.receive("a")
		lease := c.claimOne("a").Lease
		c.settle(lease, box.Release)
		c.ignored(lease, box.Ack, "the lease was given back")
		c.expect("a", "ready", "nothing ran")
	}},
	{"IBX-044+IBX-036+P3_settling_and_claiming_together_are_both", func(c *suite) {
		c.receiveAll("acked", "failed", "lost", "next", "after")
		got := c.claim(3)
		c.settle(got[2].Lease, box.Ack)
		settled, claimed := c.exchange([]box.Settlement{
			{Lease: got[0].Lease, Verb: box.Ack, Handler: "h"},
			{Lease: got[1].Lease, Verb: box.Fail, Error: "no"},
			{Lease: got[2].Lease, Verb: box.Ack},
			{Lease: got[0].Lease, Verb: box.Ack},
		}, 1)
		equal(c, []bool{settled[0].Applied, settled[1].Applied, settled[2].Applied, settled[3].Applied},
			[]bool{true, true, false, false}, "only current leases end, and each once")
		equal(c, ids(claimed), []string{"next"}, "the limit holds, and the order of arrival")
		c.expect("acked", "done", "its run succeeded")
		c.expect("failed", "dead", "its run failed for good")
		equal(c, c.get("acked").Done.Handler, "h", "the handler is recorded")
		c.settle(claimed[0].Lease, box.Ack)
	}},
	{"LANE+P3_settling_a_head_with_a_claim_lets_its_group_go_on", func(c *suite) {
		for _, id := range []string{"a", "b"} {
			c.receive(id, group("g"))
		}
		head := c.claimOne("a")
		settled, _ := c.exchange([]box.Settlement{{Lease: head.Lease, Verb: box.Ack}}, 1)
		c.is(settled[0].Applied, "the head's lease was current")
		if rec := c.get("b"); rec.Stage != postroom.StageLeased {
			c.claimOne("b")
		}
	}},
}

// exchange settles and claims, together where the store can do so.
func (c *suite) exchange(settlements []box.Settlement, limit int) ([]box.Settled, []*postroom.Message) {
	c.Helper()
	if ex, ok := c.Store.(box.Exchanger); ok && ex.Exchanges() {
		req := box.ClaimRequest{Consumer: c.consumer, Owner: worker, Lease: leaseTime, Limit: limit, ReadyOnly: true}
		settled, claimed, err := ex.Exchange(c.ctx, settlements, req)
		c.must(err, "exchange")
		return settled, claimed
	}
	return c.settleAll(settlements...), c.claimWith(box.ClaimRequest{Limit: limit, ReadyOnly: true})
}

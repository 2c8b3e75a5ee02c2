package never

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom"
)

// What the tests under load have in common: so many slots in the worker, so many
// callers of Receive at once.
const (
	loadSlots   = 128
	loadCallers = 32
)

// callers receive at the same time, each its own messages, one after the other.
type callers struct {
	testing.TB
	p            *program
	name         string
	acknowledged atomic.Int64
	refused      atomic.Int64
	refusal      atomic.Value // text of the last error
	// counts are the acknowledged messages of each, which are its first ones.
	counts  [loadCallers]int
	running sync.WaitGroup
	stop    atomic.Bool
}

// call lets callers send until they are stopped, or have done their share; share 0
// has no end. An error is answered as a broker would: the same once more.
func (p *program) call(name string, share int) *callers {
	c := &callers{TB: p.TB, p: p, name: name}
	for n := range loadCallers {
		c.running.Go(func() {
			for i := 0; share == 0 || i < share; i++ {
				if !c.one(fmt.Sprintf("%s-%d-%d", name, n, i)) {
					return
				}
				c.counts[n]++
			}
		})
	}
	p.Cleanup(func() {
		c.end()
		if p.Failed() {
			p.Logf("%d messages were acknowledged, %d refused, the last with: %v", c.acknowledged.Load(), c.refused.Load(), c.refusal.Load())
		}
	})
	return c
}

// one reports whether the message was acknowledged before they were stopped.
func (c *callers) one(id string) bool {
	for !c.stop.Load() {
		_, err := c.p.in.Receive(context.Background(), message(id))
		if err == nil {
			c.acknowledged.Add(1)
			return true
		}
		c.refused.Add(1)
		c.refusal.Store(err.Error())
		time.Sleep(time.Millisecond) // a server that is away refuses at once
	}
	return false
}

// sent is a query that gives the acknowledged messages, after the end.
func (c *callers) sent() string {
	counts := strings.ReplaceAll(strings.Trim(fmt.Sprint(c.counts), "[]"), " ", ",")
	return `SELECT '` + c.name + `-' || (n - 1) || '-' || i AS id
		FROM unnest(ARRAY[` + counts + `]) WITH ORDINALITY AS u(count, n), generate_series(0, count - 1) AS i`
}

// end stops them and waits for their calls to return.
func (c *callers) end() {
	c.stop.Store(true)
	c.running.Wait()
}

// A high is the highest value that was seen.
type high struct{ atomic.Int64 }

func (h *high) see(n int64) {
	for old := h.Load(); n > old && !h.CompareAndSwap(old, n); old = h.Load() {
	}
}

// leases counts those that a worker holds, from its own account: what it claimed
// less what it settled.
type leases struct {
	held             atomic.Int64
	most, asked, got high
}

func (l *leases) observer() *postroom.Observer {
	return &postroom.Observer{
		Claimed: func(_ context.Context, e postroom.ClaimedEvent) {
			l.asked.see(int64(e.Asked))
			l.got.see(int64(e.Got))
			l.most.see(l.held.Add(int64(e.Got)))
		},
		Settled: func(context.Context, postroom.SettledEvent) { l.held.Add(-1) },
	}
}

package box

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postroom/postroom"
)

// inOne is a runner that runs all messages together.
type inOne struct{}

func (inOne) Refresh(context.Context) {}

func (inOne) Split(msgs []*postroom.Message) []Part {
	return []Part{{Messages: msgs, Run: func(context.Context, *Job) {}}}
}

// Of two claims under way the later may return first.
func TestLoop_believes_in_no_lease_longer_than_its_own_claim_gave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lease = 30 * time.Second
		l := NewLoop(&Box{}, inOne{}, LoopOptions{Concurrency: 3, Batch: 3, Lease: lease, Poll: time.Second})
		l.work, l.patience = t.Context(), time.NewTimer(time.Second)
		defer l.patience.Stop()
		later := time.Now()
		earlier := later.Add(-5 * time.Second)
		l.waiting = []claimed{
			{new(postroom.Message), &landing{later.Add(-lease), later}}, // is over
			{new(postroom.Message), &landing{later, later}},
			{new(postroom.Message), &landing{earlier, later}},
		}
		l.fill()
		if len(l.keeper.holds) != 1 {
			t.Errorf("%d holds, want 1", len(l.keeper.holds))
		}
		for _, h := range l.keeper.holds {
			if len(h.leases) != 2 || !h.until.Equal(earlier.Add(lease)) {
				t.Errorf("%d leases held until %v after the first was asked for, want 2 and %v", len(h.leases), h.until.Sub(earlier), lease)
			}
		}
		synctest.Wait()
	})
}

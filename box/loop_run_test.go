package box

import (
	"context"
	"runtime"
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

// Whoever keeps the context of a run that is over keeps no messages with it, but the
// one that can be found by it.
func TestLoop_context_of_several_messages_does_not_keep_them(t *testing.T) {
	l := NewLoop(&Box{}, inOne{}, LoopOptions{Concurrency: 3, Batch: 3, Lease: time.Minute, Poll: time.Second})
	l.work = t.Context()
	freed := make(chan struct{})
	msgs := []*postroom.Message{new(postroom.Message), new(postroom.Message)}
	runtime.AddCleanup(msgs[0], func(freed chan struct{}) { close(freed) }, freed)
	job := l.job(Part{Messages: msgs}, time.Now(), time.Now())
	ctx := &job.hold.ctx
	l.keeper.Drop(job.hold)
	msgs, job = nil, nil
	for range 100 {
		runtime.GC()
		select {
		case <-freed:
			runtime.KeepAlive(ctx)
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Error("the context keeps the messages in memory")
	runtime.KeepAlive(ctx)
}

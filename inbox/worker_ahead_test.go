package inbox_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
)

// leased counts the leases that are held.
func (f *fixture) leased(t *testing.T) int {
	t.Helper()
	stats, err := f.Stats(t.Context())
	ok(t, err)
	n := 0
	for _, c := range stats.Live {
		if c.Stage == postroom.StageLeased {
			n += int(c.N)
		}
	}
	return n
}

// While runs are quick a worker claims ahead of its slots. When they hang, what
// it has claimed ahead must go back to where others can take it, and no more
// must come.
func TestWorkerGivesBackWhatItsHandlersDoNotGetTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots, quick = 4, 100
		f := open(t, inbox.Options{})
		for i := range 400 {
			f.receive(t, fmt.Sprint(i))
		}
		var ran atomic.Int32
		hang := make(chan struct{})
		_, stop := work(t, f.Inbox, handling(func(context.Context, *postroom.Message) error {
			if ran.Add(1) > quick {
				<-hang
			}
			return nil
		}), inbox.WorkerOptions{Concurrency: slots, Batch: 20})
		synctest.Wait()
		if n := f.leased(t); n <= slots {
			t.Errorf("%d leases for %d slots while runs are quick, want some ahead", n, slots)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := f.leased(t); n != slots {
			t.Errorf("%d leases after 5 s in which %d slots hang, want one for each", n, slots)
		}
		close(hang)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		ok(t, stop())
		if n := ran.Load(); n != 400 {
			t.Errorf("%d runs of 400 messages", n)
		}
	})
}

// What was claimed ahead when a worker is told to stop is released at no cost.
func TestWorkerReleasesWhatItClaimedAheadWhenItStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots, quick = 4, 100
		f := open(t, inbox.Options{})
		for i := range 400 {
			f.receive(t, fmt.Sprint(i))
		}
		var ran atomic.Int32
		hang := make(chan struct{})
		_, stop := work(t, f.Inbox, handling(func(_ context.Context, m *postroom.Message) error {
			if m.Attempt != 0 {
				t.Errorf("message %s: attempt %d, want 0", m.ID, m.Attempt)
			}
			if ran.Add(1) > quick {
				<-hang
			}
			return nil
		}), inbox.WorkerOptions{Concurrency: slots, Batch: 20})
		synctest.Wait()
		time.AfterFunc(time.Second, func() { close(hang) })
		ok(t, stop())
		if n := f.leased(t); n != 0 {
			t.Errorf("%d leases left behind", n)
		}
		if n := ran.Load(); n != quick+slots {
			t.Errorf("%d runs, want %d and those of %d slots", n, quick, slots)
		}
	})
}

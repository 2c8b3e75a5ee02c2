package inbox_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
)

// A handler may take an hour, and its neighbours may be large.
func TestWorker_lets_go_of_messages_that_are_done_while_one_that_came_with_them_still_runs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		const all = 20
		for i := range all {
			f.receive(t, fmt.Sprint(i))
		}
		var (
			mu   sync.Mutex
			seen []weak.Pointer[postroom.Message]
		)
		slow := make(chan struct{})
		_, stop := work(t, f.Inbox, handling(func(_ context.Context, m *postroom.Message) error {
			mu.Lock()
			seen = append(seen, weak.Make(m))
			mu.Unlock()
			if m.ID == "3" {
				<-slow
			}
			return nil
		}), inbox.WorkerOptions{Concurrency: all, Batch: all})
		synctest.Wait()
		for range 3 {
			runtime.GC()
		}
		held := 0
		for _, m := range seen {
			if m.Value() != nil {
				held++
			}
		}
		if len(seen) != all || held != 1 {
			t.Errorf("%d of %d messages are still in memory, want the one that runs", held, len(seen))
		}
		close(slow)
		ok(t, stop())
	})
}

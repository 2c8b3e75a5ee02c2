package never

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
)

func TestNever12_worker_whose_handlers_could_take_every_connection_does_not_start(t *testing.T) {
	onPostgresWorkers(t, func(t *testing.T, w *world) {
		p := w.program(5, inbox.Options{})
		o := swift()
		o.Concurrency = 4
		ctx, cancel := context.WithTimeout(t.Context(), brief) // only a worker that starts uses it up
		defer cancel()
		err := p.worker(o, p.handler(plainly)).Run(ctx)
		if err == nil || !strings.Contains(err.Error(), "the pool has 5: raise its maximum to 6, or lower Concurrency to 3") {
			t.Errorf("the worker said %v, want what to raise and to what", err)
		}
	})
}

func TestNever12_worker_with_the_fewest_connections_renews_and_receives_while_all_handlers_have_one(t *testing.T) {
	const slots = 4
	onPostgresWorkers(t, func(t *testing.T, w *world) {
		names := numbered("m", slots)
		w.receiveAll(names...)
		p := w.program(slots+2, inbox.Options{})
		o := swift()
		o.Concurrency, o.Lease = slots, 3*time.Second
		var arrived sync.Map
		var all sync.WaitGroup
		all.Add(slots)
		p.start(o, p.handler(func(ctx context.Context, write writer, m *postroom.Message) error {
			if err := write.effect(ctx, m); err != nil || strings.HasPrefix(m.ID, "next") {
				return err
			}
			if _, again := arrived.LoadOrStore(m.ID, true); !again {
				all.Done()
			}
			all.Wait() // each has a transaction open
			for p.lot.Count("extend") == 0 {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				time.Sleep(time.Millisecond)
			}
			_, err := p.in.Receive(ctx, message("next-"+m.ID))
			return err
		}))
		w.eventually("all messages are done", func() bool {
			return w.count(`SELECT count(*) FROM postroom_done`) == 2*slots
		})
		for _, name := range names {
			w.onceEach(name, "next-"+name)
		}
	})
}

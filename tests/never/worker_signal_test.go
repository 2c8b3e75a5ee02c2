package never

import (
	"bufio"
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/tests/park"
)

func TestNever18_worker_told_to_stop_finishes_what_it_can_and_releases_the_rest(t *testing.T) {
	onPostgresWorkers(t, func(t *testing.T, w *world) {
		w.receiveAll(numbered("m", 6)...)
		c := w.child("stop", "300ms")
		var runs []string
		for range 4 {
			runs = append(runs, c.until("runs"))
		}
		c.signal(syscall.SIGTERM)
		c.until("stopping")
		w.receiveAll("late")
		c.tell(runs[0])
		c.tell(runs[1])
		if code := c.ended(); code != 0 {
			t.Errorf("the child ended with %d", code)
		}
		w.onceEach(runs[0], runs[1])
		w.untouched(runs[2])
		w.untouched(runs[3])
		w.untouched("late")
		if n := w.count(`SELECT count(*) FROM postroom_work WHERE fence = 0`); n != 3 {
			t.Errorf("%d messages were never claimed, want 3: it went on claiming", n)
		}
		w.finish()
		w.onceEach(append(numbered("m", 6), "late")...)
	})
}

func TestNever18_worker_told_twice_stops_at_once(t *testing.T) {
	onPostgresWorkers(t, func(t *testing.T, w *world) {
		w.receiveAll("a", "b")
		c := w.child("stop", "1h")
		c.until("runs")
		c.until("runs")
		c.signal(syscall.SIGTERM)
		c.until("stopping")
		w.expect("a", "leased")
		c.signal(syscall.SIGTERM)
		if code := c.ended(); code != 0 {
			t.Errorf("the child ended with %d", code)
		}
		w.untouched("a")
		w.untouched("b")
	})
}

func TestNever18_worker_told_to_stop_during_a_claim_puts_back_what_it_got(t *testing.T) {
	onWorkers(t, func(t *testing.T, w *world) {
		w.receiveAll("a", "b")
		p := w.program(0, inbox.Options{})
		spot := p.lot.Park(park.After, "claim")
		ctx, cancel := context.WithCancel(t.Context())
		worker := p.worker(swift(), p.handler(plainly))
		ended := park.Go(t, func(context.Context) { p.serve(ctx, worker) })
		spot.Wait(t)
		cancel()
		spot.Release()
		ended()
		w.untouched("a")
		w.untouched("b")
	})
}

// childStops is a worker program as its author would write it. Its handlers end
// when they are told to by the names of their messages.
func childStops(t testing.TB, w *world, drain string) {
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	p := w.program(0, inbox.Options{})
	o := swift()
	o.Concurrency = 4
	var err error
	o.DrainTimeout, err = time.ParseDuration(drain)
	w.must(err)
	told := map[string]chan struct{}{}
	for _, id := range append(numbered("m", 6), "a", "b", "late") {
		told[id] = make(chan struct{})
	}
	worker := p.worker(o, p.handler(func(ctx context.Context, write writer, m *postroom.Message) error {
		if err := write.effect(ctx, m); err != nil {
			return err
		}
		say("runs", m.ID)
		select {
		case <-told[m.ID]:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}))
	go func() {
		<-ctx.Done()
		again := make(chan os.Signal, 1)
		signal.Notify(again, syscall.SIGTERM)
		say("stopping")
		<-again
		worker.Halt()
	}()
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			close(told[lines.Text()])
		}
	}()
	p.serve(ctx, worker)
}

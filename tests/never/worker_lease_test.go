package never

import (
	"bufio"
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/tests/park"
)

func TestNever03_worker_that_was_stopped_for_longer_than_its_lease_changes_nothing(t *testing.T) {
	// The child learns of it from its renewal, or from its own clock before it
	// would settle, or only from the fence.
	for _, learns := range []string{"renewal", "clock", "fence"} {
		t.Run(learns, func(t *testing.T) {
			onPostgresWorkers(t, func(t *testing.T, w *world) {
				w.receiveAll("a")
				c := w.child("stand", learns)
				c.until("runs")
				c.signal(syscall.SIGSTOP)
				if learns != "clock" {
					w.pass(2 * leaseTime)
				}
				p := w.program(0, inbox.Options{})
				stop := p.start(swift(), p.handler(plainly))
				w.allDone()
				stop()
				if learns != "renewal" {
					c.tell("a") // to finish as soon as it can
				}
				c.signal(syscall.SIGCONT)
				if cause := c.until("cancelled"); learns == "renewal" && cause != postroom.ErrLeaseLost.Error() {
					t.Errorf("its context ended with %q", cause)
				}
				if tried := c.until("tried to settle:"); (tried == "true") != (learns == "fence") {
					t.Errorf("that the child tried to settle in its transaction is %s", tried)
				}
				if code := c.ended(); code != 0 {
					t.Errorf("the child ended with %d", code)
				}
				w.onceEach("a")
			})
		})
	}
}

// childStands has a handler that does not return before its lease is lost, or
// when it is told to.
func childStands(t testing.TB, w *world, learns string) {
	var hangs *park.Spot
	p := w.program(0, inbox.Options{Observer: &postroom.Observer{
		Settled: func(context.Context, postroom.SettledEvent) {
			if hangs != nil {
				hangs.Release()
			}
		},
	}})
	o := swift()
	switch learns {
	case "renewal":
		o.Lease = 3 * time.Second
	case "clock":
		o.Lease = time.Second
		// The keeper would notice as well: it stands still until it is too late.
		hangs = p.lot.Park(park.Before, "lock_work")
	}
	told := make(chan struct{})
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		close(told)
	}()
	settle := p.lot.ParkWithin(park.Before, "lock_work", "INSERT INTO effect")
	settle.Release()
	ctx, cancel := context.WithCancel(t.Context())
	worker := p.worker(o, p.handler(func(ctx context.Context, write writer, m *postroom.Message) error {
		if err := write.effect(ctx, m); err != nil {
			return err
		}
		if hangs != nil {
			<-hangs.Arrived()
		}
		say("runs")
		select {
		case <-told:
		case <-ctx.Done():
		}
		say("cancelled", context.Cause(ctx))
		cancel()
		return nil
	}))
	p.serve(ctx, worker)
	select {
	case <-settle.Arrived():
		say("tried to settle: true")
	default:
		say("tried to settle: false")
	}
}

func TestNever03_worker_that_cannot_renew_lets_its_handler_go(t *testing.T) {
	t.Run("postgres", func(t *testing.T) {
		w := newPostgres(t)
		w.receiveAll("a")
		p := w.program(0, inbox.Options{})
		p.lot.FailAll("extend", park.ErrLost)
		o := swift()
		o.Lease = time.Second
		lost := make(chan error, 1)
		taken := make(chan struct{})
		stop := p.start(o, p.handler(func(ctx context.Context, write writer, m *postroom.Message) error {
			if err := write.effect(context.WithoutCancel(ctx), m); err != nil {
				return err
			}
			<-ctx.Done()
			lost <- context.Cause(ctx)
			<-taken
			return nil
		}))
		w.eventually("the handler's context ends", func() bool { return len(lost) > 0 })
		wants(t, <-lost, postroom.ErrLeaseLost)
		w.pass(2 * leaseTime)
		w.finish()
		stopped := park.Go(t, func(context.Context) { stop() })
		close(taken)
		stopped()
		w.onceEach("a")
	})
}

func TestNever03_worker_whose_renewal_hangs_changes_nothing_once_another_took_over(t *testing.T) {
	onPostgresWorkers(t, func(t *testing.T, w *world) {
		w.receiveAll("a")
		p := w.program(0, inbox.Options{})
		// Before the row is locked: a lease whose row is locked is not reaped.
		hangs := p.lot.Park(park.Before, "lock_work")
		o := swift()
		o.Lease = 3 * time.Second
		taken := make(chan struct{})
		stop := p.start(o, p.handler(func(ctx context.Context, write writer, m *postroom.Message) error {
			if err := write.effect(ctx, m); err != nil {
				return err
			}
			<-taken
			return nil
		}))
		hangs.Wait(t)
		w.pass(2 * leaseTime)
		w.finish()
		close(taken)
		w.eventually("the late transaction is rolled back", func() bool { return p.lot.Count(park.Rollback) > 0 })
		hangs.Release()
		stop()
		w.onceEach("a")
	})
}

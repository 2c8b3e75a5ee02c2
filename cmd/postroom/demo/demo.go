package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os/exec"
	"sync"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
)

// Options of a demo.
type Options struct {
	Plan
	Workers int
	// Chaos is how long processes are killed and stalled.
	Chaos time.Duration
	// KillEvery, CrashEvery, StallEvery and SuspendEvery are the mean times
	// between two kills of a worker, two crashes of a sender, two stalls of a
	// worker, two suspensions of all workers. 0: never.
	KillEvery, CrashEvery, StallEvery, SuspendEvery time.Duration
	// Store is open and has its tables.
	Store *Store
	// Command gives the command that calls Child, with one variable set.
	Command func(ctx context.Context, variable string) *exec.Cmd
	// Log is the file that the children write their logs to.
	Log string
	// Progress is where progress goes; Live says that it is a terminal.
	Progress io.Writer
	Live     bool
}

// demo is a demo that runs.
type demo struct {
	opts Options
	in   *inbox.Inbox

	mu      sync.Mutex
	ledger  Ledger
	senders map[*process]bool
	workers map[*process]bool
	phase   string
}

// Run plays the demo and counts what came of it. The error is about the demo
// itself; a ledger that does not balance is none.
func Run(ctx context.Context, o Options) (*Ledger, error) {
	d := &demo{opts: o, senders: map[*process]bool{}, workers: map[*process]bool{}}
	d.ledger.Seed = o.Seed
	in, err := inbox.New(o.Store.Store, o.Consumer, inbox.Options{
		Logger: slog.New(slog.DiscardHandler),
		Observer: &postroom.Observer{
			Lost: func(context.Context, postroom.LostEvent) { d.hear("lost", nil) },
			Died: func(context.Context, postroom.DiedEvent) { d.hear("died", nil) },
		},
	})
	if err != nil {
		return nil, err
	}
	d.in = in
	viewing, stopView := context.WithCancel(ctx)
	var view sync.WaitGroup
	view.Go(func() { d.view(viewing) })
	err = d.play(ctx)
	stopView()
	view.Wait()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	l := &d.ledger
	l.Retried = l.Failed + l.Panicked + l.TimedOut
	if err := l.audit(ctx, &o.Plan, in, o.Store); err != nil {
		return nil, errors.Join(err, in.Close())
	}
	l.tooQuiet(&o)
	return l, in.Close()
}

// play lets chaos reign, then lets the rest be done in peace. The first process
// that fails by itself ends it.
func (d *demo) play(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	working, stopWorking := context.WithCancel(ctx)
	chaos, calm := context.WithTimeout(ctx, d.opts.Chaos)
	defer calm()
	var senders, workers, trouble sync.WaitGroup
	d.enter("chaos")
	for i := range d.opts.Senders {
		senders.Go(func() { d.keepSending(ctx, chaos, i, fail) })
	}
	for range d.opts.Workers {
		workers.Go(func() { d.keepWorking(working, d.opts.Plan, fail) })
	}
	trouble.Go(func() { d.trouble(chaos) })
	senders.Wait()
	<-chaos.Done()
	trouble.Wait()
	d.enter("calm")
	stopWorking()
	workers.Wait()

	// The handlers are repaired.
	repaired := d.opts.Plan
	repaired.Calm = true
	working, stopWorking = context.WithCancel(ctx)
	for range d.opts.Workers {
		workers.Go(func() { d.keepWorking(working, repaired, fail) })
	}
	err := d.settle(ctx)
	stopWorking()
	workers.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// keepSending restarts a sender until it has delivered all. One that crashed has
// forgotten some of what was acknowledged. Senders no longer crash when the
// chaos is over.
func (d *demo) keepSending(ctx, chaos context.Context, sender int, fail context.CancelCauseFunc) {
	t := task{Plan: d.opts.Plan, Sender: sender, Log: d.opts.Log}
	for finished := false; !finished && ctx.Err() == nil; {
		next := t.From
		killed, err := d.spawn(ctx, t, func(word string, numbers []int) {
			switch {
			case word == "sent" && len(numbers) == 1:
				d.count(func(l *Ledger) { l.Sent += numbers[0] })
			case word == "acknowledged" && len(numbers) == 3:
				next = numbers[2]
				d.count(func(l *Ledger) {
					l.Acknowledged += numbers[0] + numbers[1]
					l.Accepted += numbers[0]
					l.Duplicates += numbers[1]
				})
			case word == "finished":
				finished = true
			}
		})
		if err != nil {
			fail(err)
			return
		}
		if killed {
			d.count(func(l *Ledger) { l.SendersCrashed++ })
			next = max(next-rand.IntN(3*batchMax), 0) //nolint:gosec // it is a demo
			// What is left is to be sent in the time that is left.
			if left, ok := chaos.Deadline(); ok {
				t.Span = max(min(t.Span, time.Until(left)), time.Second)
			}
		}
		t.From = next
	}
}

// keepWorking restarts a worker as often as it dies.
func (d *demo) keepWorking(ctx context.Context, p Plan, fail context.CancelCauseFunc) {
	for ctx.Err() == nil {
		_, err := d.spawn(ctx, task{Plan: p, Sender: -1, Log: d.opts.Log}, d.hear)
		if err != nil {
			fail(err)
			return
		}
	}
}

// hear notes what a worker tells.
func (d *demo) hear(word string, _ []int) {
	d.count(func(l *Ledger) {
		counters := map[string]*int{
			"run": &l.Runs, "failed": &l.Failed, "panicked": &l.Panicked, "overtime": &l.TimedOut,
			"refused": &l.Refused, "lost": &l.LeasesLost, "died": &l.Died,
		}
		if n := counters[word]; n != nil {
			*n++
		}
	})
}

// settle requeues what is dead and waits until nothing is left to do.
func (d *demo) settle(ctx context.Context) error {
	// Nothing may be stuck for longer than two leases and the longest backoff;
	// a busy machine gets some time on top.
	deadline := time.Now().Add(2*d.opts.Lease + 30*time.Second)
	for {
		n, err := d.in.RequeueAll(ctx, inbox.Filter{State: postroom.StateDead}, inbox.Order{Actor: "demo", Reason: "the handler was repaired"})
		if err != nil {
			return fmt.Errorf("requeue: %w", err)
		}
		d.count(func(l *Ledger) { l.Requeued += n })
		stats, err := d.in.Stats(ctx)
		if err != nil {
			return fmt.Errorf("count what is left: %w", err)
		}
		// What is stuck is for the ledger to say.
		if len(stats.Live) == 0 || time.Now().After(deadline) {
			return nil
		}
		if !rest(ctx, 200*time.Millisecond) {
			return nil
		}
	}
}

func (d *demo) count(f func(*Ledger)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(&d.ledger)
}

func (d *demo) enter(phase string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.phase = phase
}

func (d *demo) of(worker bool) map[*process]bool {
	if worker {
		return d.workers
	}
	return d.senders
}

func (d *demo) add(worker bool, p *process) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of(worker)[p] = true
}

func (d *demo) remove(worker bool, p *process) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.of(worker), p)
}

// pick gives one of the living processes, or nil.
func (d *demo) pick(worker bool) *process {
	d.mu.Lock()
	defer d.mu.Unlock()
	for p := range d.of(worker) {
		return p // the order of a map is random
	}
	return nil
}

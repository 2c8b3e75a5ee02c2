package inbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// A Worker handles the messages of an inbox. Any number of them, in any number
// of processes, share the work.
type Worker struct {
	in   *Inbox
	mux  *Mux
	opts WorkerOptions

	mu   sync.Mutex
	loop *box.Loop // set while it runs
}

// WorkerOptions of a Worker. The zero value consists entirely of defaults.
type WorkerOptions struct {
	// Concurrency is how many messages are handled at once. Default 10.
	Concurrency int
	// Batch is how many messages are claimed at once at most. Default 50.
	Batch int
	// Lease is how long a message outlives a process that dies with it. It is
	// renewed while the handler runs. Default 30 s; 10 to 300 s are recommended.
	Lease time.Duration
	// Poll is how often an idle worker looks for messages. Messages that this
	// process received wake it at once. Default 0.5 s.
	Poll time.Duration
	// MaxPoll is how long the interval grows while nothing comes. Default 5 s.
	MaxPoll time.Duration
	// HandlerTimeout ends the context of a run that takes longer, which then
	// failed. Default: none.
	HandlerTimeout time.Duration
	// MaxAttempts is after how many failed runs a message is Dead. Default 10.
	MaxAttempts int
	// Backoff gives the delay before the next run. Default: 2, 4, 8 … 60
	// seconds, spread by ten percent.
	Backoff postroom.Backoff
	// Rules say what to do with certain errors, after those of the handler.
	// Default: none.
	Rules []Rule
	// ReapEvery is how often leases of dead processes are ended. Default: a
	// third of Lease.
	ReapEvery time.Duration
	// DrainTimeout is how long handlers may finish once Run's context is done.
	// Then their contexts end, and messages that did not finish are released at
	// no cost. Default 20 s.
	DrainTimeout time.Duration
	// Owner names the worker in leases. Default: host, process and four random letters.
	Owner string
}

// NewWorker makes a worker, which Run then checks and starts.
func NewWorker(in *Inbox, mux *Mux, o WorkerOptions) *Worker {
	return &Worker{in: in, mux: mux, opts: o}
}

// Run handles messages until ctx is done, then waits for the handlers in flight.
// It fails at once when an option or a registration can't work, and at the end
// when handlers did not return. One Run of a Worker at a time.
func (w *Worker) Run(ctx context.Context) error { return w.run(ctx, false) }

// RunUntilIdle handles messages until none is ready, for tests and for programs
// that are started by a timer. Messages that wait for their time are left.
func (w *Worker) RunUntilIdle(ctx context.Context) error { return w.run(ctx, true) }

// Halt stops a running worker without waiting for the handlers in flight: their
// contexts end now. Call it on a second signal.
func (w *Worker) Halt() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.loop != nil {
		w.loop.Halt()
	}
}

func (w *Worker) run(ctx context.Context, untilIdle bool) error {
	loop, err := w.begin(untilIdle)
	if err != nil {
		return fmt.Errorf("start worker of %q: %w", w.in.Consumer(), err)
	}
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.loop = nil
	}()
	w.in.box.CheckBatch(ctx, w.opts.Batch)
	w.in.box.Logger().InfoContext(ctx, "worker runs", "owner", w.opts.Owner, "concurrency", w.opts.Concurrency)
	err = loop.Run(ctx)
	w.in.box.Logger().InfoContext(ctx, "worker stopped", "owner", w.opts.Owner)
	return err
}

func (w *Worker) begin(untilIdle bool) (*box.Loop, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.loop != nil {
		return nil, errors.New("it runs already")
	}
	if w.mux == nil {
		return nil, &postroom.ArgumentError{Argument: "mux", Reason: "is nil"}
	}
	if err := w.opts.complete(); err != nil {
		return nil, err
	}
	routes, err := w.mux.table()
	if err != nil {
		return nil, err
	}
	if err := w.fits(routes); err != nil {
		return nil, err
	}
	w.loop = box.NewLoop(w.in.box, newDispatcher(w.in, w.opts, routes), box.LoopOptions{
		Owner:       w.opts.Owner,
		Concurrency: w.opts.Concurrency,
		Batch:       w.opts.Batch,
		Lease:       w.opts.Lease,
		Poll:        w.opts.Poll,
		MaxPoll:     w.opts.MaxPoll,
		ReapEvery:   w.opts.ReapEvery,
		Drain:       w.opts.DrainTimeout,
		UntilIdle:   untilIdle,
	})
	return w.loop, nil
}

// complete puts the defaults in and refuses what can't work.
func (o *WorkerOptions) complete() error {
	err := errors.Join(
		box.Default("Concurrency", &o.Concurrency, 10),
		box.Default("Batch", &o.Batch, 50),
		box.Default("MaxAttempts", &o.MaxAttempts, 10),
		box.Default("Lease", &o.Lease, DefaultLease),
		box.Default("Poll", &o.Poll, 500*time.Millisecond),
		box.Default("MaxPoll", &o.MaxPoll, max(5*time.Second, o.Poll)),
		box.Default("DrainTimeout", &o.DrainTimeout, 20*time.Second),
		box.Default("ReapEvery", &o.ReapEvery, max(o.Lease/3, 1)),
		box.Default("HandlerTimeout", &o.HandlerTimeout, 0),
	)
	if err != nil {
		return err
	}
	if o.Backoff == nil {
		o.Backoff = postroom.Jitter(postroom.DefaultBackoff, 0.1)
	}
	if o.Owner == "" {
		o.Owner = box.NewOwner()
	}
	return nil
}

// fits refuses a configuration in which handlers take every connection, so that
// the settling and renewing that would free them waits for ever.
func (w *Worker) fits(routes *table) error {
	store := w.in.box.Store()
	p, ok := store.(box.Pool)
	if !ok || !routes.transactional() || serial(store) {
		return nil
	}
	need := w.opts.Concurrency + spareConns
	if n := p.MaxConns(); n > 0 && n < need {
		return fmt.Errorf("%d transactional handlers at once need %d connections, the pool has %d: raise its maximum to %d, or lower Concurrency to %d",
			w.opts.Concurrency, need, n, need, max(n-spareConns, 1))
	}
	return nil
}

// spareConns are for claiming and settling, and for renewing, while each handler
// has one.
const spareConns = 2

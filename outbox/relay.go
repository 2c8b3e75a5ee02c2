package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// A Relay sends what was committed to an outbox. Any number of them, in any
// number of processes, share the work: in the normal case each message is sent
// once, and the messages of a group one after the other, in order.
type Relay struct {
	out    *Outbox
	routes *Routes
	opts   RelayOptions

	mu   sync.Mutex
	loop *box.Loop // set while it runs
}

// RelayOptions of a Relay. The zero value consists entirely of defaults.
type RelayOptions struct {
	// Batch is how many messages a sender gets at once at most. Default 100.
	Batch int
	// InFlight is how many messages are being sent at once at most. Default 400.
	InFlight int
	// SendTimeout ends the context of a call of a sender that takes longer.
	// Default 30 s.
	SendTimeout time.Duration
	// Backoff gives the delay after a failure. Default: 2, 4, 8 … 60 seconds,
	// spread by ten percent.
	Backoff postroom.Backoff
	// Poll is how often the relay looks for what was committed. Default 0.5 s.
	Poll time.Duration
	// Lease is how long a message outlives a process that dies with it. Default
	// 30 s; 10 to 300 s are recommended.
	Lease time.Duration
	// ReapEvery is how often leases of dead processes are ended. Default: a
	// third of Lease.
	ReapEvery time.Duration
	// DrainTimeout is how long senders may finish once Run's context is done.
	// Default 20 s.
	DrainTimeout time.Duration
	// Owner names the relay in leases. Default: host, process and four random letters.
	Owner string
}

// NewRelay makes a relay, which Run then checks and starts.
func NewRelay(out *Outbox, routes *Routes, o RelayOptions) *Relay {
	return &Relay{out: out, routes: routes, opts: o}
}

// Run sends until ctx is done, then waits for the senders in flight. It fails at
// once when an option or a route can't work, and at the end when senders did not
// return. One Run of a Relay at a time.
func (r *Relay) Run(ctx context.Context) error {
	loop, err := r.begin(false)
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	var owned sync.WaitGroup
	owned.Go(func() { r.watch(watching) })
	err = r.run(ctx, loop)
	stop()
	owned.Wait()
	return err
}

// RunUntilIdle sends until nothing is ready, for tests and for programs that are
// started by a timer. Messages that wait for their time are left.
func (r *Relay) RunUntilIdle(ctx context.Context) error {
	loop, err := r.begin(true)
	if err != nil {
		return err
	}
	return r.run(ctx, loop)
}

// Halt stops a running relay without waiting for the senders in flight: their
// contexts end now. Call it on a second signal.
func (r *Relay) Halt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.loop != nil {
		r.loop.Halt()
	}
}

func (r *Relay) run(ctx context.Context, loop *box.Loop) error {
	log := r.out.box.Logger()
	r.out.box.CheckBatch(ctx, r.opts.Batch)
	log.InfoContext(ctx, "relay runs", "owner", r.opts.Owner)
	err := loop.Run(ctx)
	log.InfoContext(ctx, "relay stopped", "owner", r.opts.Owner)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loop = nil
	return err
}

func (r *Relay) begin(untilIdle bool) (*box.Loop, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.loop != nil {
		return nil, errors.New("start relay: it runs already")
	}
	if r.routes == nil {
		return nil, fmt.Errorf("start relay: %w", argument("routes", "are nil"))
	}
	if err := r.opts.complete(); err != nil {
		return nil, fmt.Errorf("start relay: %w", err)
	}
	routes, err := r.routes.table()
	if err != nil {
		return nil, fmt.Errorf("start relay: %w", err)
	}
	r.loop = box.NewLoop(r.out.box, &dispatcher{r.out, r.opts, routes, box.NewPauses(r.out.box, r.opts.Poll)}, box.LoopOptions{
		Owner:       r.opts.Owner,
		Concurrency: r.opts.InFlight,
		// Several claims are under way at once, each for some calls of senders. Very
		// large ones are in each other's way.
		Batch: max(r.opts.Batch, min(r.opts.InFlight/2, 500)),
		Lease: r.opts.Lease,
		Poll:  r.opts.Poll,
		// What others commit wakes nobody: the poll is how long it waits.
		MaxPoll:   r.opts.Poll,
		ReapEvery: r.opts.ReapEvery,
		Drain:     r.opts.DrainTimeout,
		UntilIdle: untilIdle,
	})
	return r.loop, nil
}

// complete puts the defaults in and refuses what can't work.
func (o *RelayOptions) complete() error {
	if o.Backoff == nil {
		o.Backoff = postroom.Jitter(postroom.DefaultBackoff, 0.1)
	}
	if o.Owner == "" {
		o.Owner = box.NewOwner()
	}
	return errors.Join(
		box.Default("Batch", &o.Batch, 100),
		box.Default("InFlight", &o.InFlight, 4*o.Batch),
		box.Default("SendTimeout", &o.SendTimeout, 30*time.Second),
		box.Default("Poll", &o.Poll, 500*time.Millisecond),
		box.Default("Lease", &o.Lease, 30*time.Second),
		box.Default("ReapEvery", &o.ReapEvery, max(o.Lease/3, 1)),
		box.Default("DrainTimeout", &o.DrainTimeout, 20*time.Second),
	)
}

package box

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/postroom/postroom"
)

// A Loop claims messages as slots free up, has them run, and settles them. One
// goroutine owns its state: it alone claims, starts and counts. Runs, the
// keeper, the settler and the reaper report to it.
//
//	claim ──▶ land ──▶ start ──▶ run ──▶ finish ──▶ settler ──▶ settle
//	  ▲                   keeper renews the leases       │
//	  └── slots, and what has ended, if it can go along ◀┘
type Loop struct {
	box    *Box
	opts   LoopOptions
	runner Runner

	keeper   *Keeper
	settler  *settler
	landed   chan *flight // claims that returned
	runners  *runners
	settled  chan []*Job   // runs whose end is committed, or came too late
	stopping chan struct{} // closed when nothing new may start
	halt     chan struct{} // closed when runs must end
	halting  sync.Once
	lasting  context.Context // Run's, without its end
	work     context.Context // what runs live in

	// What follows belongs to the goroutine of Run.
	busy      int       // slots whose handler runs
	unsettled int       // messages that ran and are not settled
	ended     []*Job    // of those, what nobody settles yet
	waiting   []claimed // claimed ahead of the slots
	flying    int       // claims under way
	coming    int       // messages that those ask for
	pace      pace
	look      look
	hinted    look // what hints and polls ask for since the last claim
	follow    bool // look is what a hint asks for, and nothing else
	lastFull  time.Time
	idle      time.Duration // from the last rest to its poll
	poll      *time.Timer
	patience  *time.Timer // what was claimed ahead may wait so long
	retry     time.Time   // when the next message of this loop can run again
	solo      bool        // a suspect runs alone
	over      bool        // nothing new may start
	clearing  time.Time   // until when the slots empty for a suspect
	probe     time.Time   // when to look for suspects while busy
}

// LoopOptions of a Loop. All are required.
type LoopOptions struct {
	Owner       string
	Concurrency int
	Batch       int
	Lease       time.Duration
	Poll        time.Duration
	MaxPoll     time.Duration
	ReapEvery   time.Duration
	Drain       time.Duration
	// UntilIdle ends the loop when nothing is ready and nothing runs.
	UntilIdle bool
}

// A Runner works on what a Loop claims.
type Runner interface {
	// Refresh is called before each claim that looks everywhere.
	Refresh(ctx context.Context)
	// Split divides what was claimed into runs.
	Split(msgs []*postroom.Message) []Part
}

// A Part is what is run together.
type Part struct {
	Messages []*postroom.Message
	// Run works on the messages and sets the ends of the job. It may take as long as
	// it wants: others run meanwhile.
	Run func(ctx context.Context, job *Job)
}

// ErrStopping is the cause of a run's context that ended because its worker
// stops.
var ErrStopping = errors.New("postroom: worker is stopping")

// retrySlack is about how long it takes to settle a run.
const retrySlack = 10 * time.Millisecond

// grace is how long runs whose context ended may take to return.
const grace = 5 * time.Second

// look is what the next claim is to do.
type look uint8

const (
	lookNot   look = iota // nothing is there, as far as is known
	lookReady             // claim what is ready
	lookFull              // also what fell due and what groups wait for
)

// NewLoop makes a loop, which is run once.
func NewLoop(b *Box, r Runner, o LoopOptions) *Loop {
	l := &Loop{
		box: b, opts: o, runner: r, keeper: NewKeeper(b, o.Lease),
		landed:   make(chan *flight, maxClaims),
		runners:  newRunners(),
		settled:  make(chan []*Job, o.Concurrency+maxClaims*o.Batch+1),
		stopping: make(chan struct{}),
		halt:     make(chan struct{}),
		look:     lookFull,
		idle:     o.Poll,
	}
	l.settler = newSettler(b, l.keeper, l.settled)
	return l
}

// Halt stops the loop at once: runs are told to end, and are released.
func (l *Loop) Halt() { l.halting.Do(func() { close(l.halt) }) }

// Run works until ctx is done, then lets runs finish within the time to drain.
func (l *Loop) Run(ctx context.Context) error {
	l.lasting = context.WithoutCancel(ctx)
	work, kill := context.WithCancelCause(l.lasting)
	chores, stop := context.WithCancel(l.lasting)
	l.work = work
	l.probe = l.nextProbe()
	l.poll = time.NewTimer(l.idle)
	defer l.poll.Stop()
	l.patience = time.NewTimer(l.opts.Poll)
	defer l.patience.Stop()
	var owned sync.WaitGroup
	owned.Go(func() { l.keeper.Run(chores) })
	owned.Go(func() { l.settler.run(chores) })
	owned.Go(func() { l.reap(chores) })
	owned.Go(func() { l.box.listen(chores) })
	err := l.serve(ctx)
	l.over = true
	close(l.stopping)
	err = errors.Join(err, l.drain(kill))
	stop()
	owned.Wait()
	kill(ErrStopping)
	return err
}

// serve is the loop itself: claim while there is room and hope, else wait.
func (l *Loop) serve(ctx context.Context) error {
	waiter, unsubscribe := l.box.wait()
	defer unsubscribe()
	for ctx.Err() == nil {
		l.absorb()
		if l.mayClaim() {
			if l.claim(ctx) {
				continue
			}
		}
		if l.flying == 0 || l.look != lookReady {
			l.hand() // else the next claim takes it along
		}
		if l.look == lookNot && l.opts.UntilIdle && l.held() == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-l.halt:
			return nil
		case f := <-l.landed:
			if err := l.land(ctx, f); err != nil && l.opts.UntilIdle {
				return err
			}
		case <-l.runners.signal:
			l.finish(l.runners.finished())
		case jobs := <-l.settled:
			l.settle(jobs)
		case <-waiter.hints:
			l.hint(waiter.full.Swap(false))
		case <-l.poll.C:
			l.hint(true)
		case <-l.patience.C:
			l.giveBack()
		}
	}
	return nil
}

// absorb takes in all that has happened, so that the next claim is for all the
// slots that are free by now. Runs that return at once do so first.
func (l *Loop) absorb() {
	runtime.Gosched()
	l.finish(l.runners.finished())
	for {
		select {
		case jobs := <-l.settled:
			l.settle(jobs)
		default:
			return
		}
	}
}

// nextProbe spreads the probes of processes that started together.
func (l *Loop) nextProbe() time.Time {
	return time.Now().Add(l.opts.Lease + rand.N(l.opts.Lease)) //nolint:gosec // spreading load needs no secrecy
}

// drain lets runs finish in time, then ends them.
func (l *Loop) drain(kill context.CancelCauseFunc) error {
	timeout := time.NewTimer(l.opts.Drain)
	defer timeout.Stop()
	halt := l.halt
	var over <-chan time.Time
	end := func() {
		kill(ErrStopping)
		halt = nil
		over = time.After(grace)
	}
	l.release()
	for l.held() > 0 {
		l.hand()
		select {
		case f := <-l.landed:
			_ = l.land(l.lasting, f) // what it brought is put back
		case <-l.runners.signal:
			l.finish(l.runners.finished())
		case jobs := <-l.settled:
			l.settle(jobs)
		case <-timeout.C:
			if halt != nil {
				end()
			}
		case <-halt:
			end()
		case <-over:
			return fmt.Errorf("worker stopped with %d handlers that did not return, %d messages that could not be settled and %d that were being claimed; their leases will lapse",
				l.busy, l.unsettled, l.coming)
		}
	}
	return nil
}

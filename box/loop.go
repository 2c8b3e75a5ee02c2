package box

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/postroom/postroom"
)

// A Loop claims messages as slots free up, has them run, and settles them. One
// goroutine owns its state: it alone claims, starts and counts. Runs, the
// keeper, the settler and the reaper report to it.
//
//	claim ──▶ start ──▶ run ──▶ finished ──▶ settler ──▶ settled
//	  ▲                  keeper renews the leases          │
//	  └───────────────── slots ◀───────────────────────────┘
type Loop struct {
	box    *Box
	opts   LoopOptions
	runner Runner

	keeper   *Keeper
	settler  *settler
	finished chan *Job     // runs that returned
	settled  chan *Job     // runs whose end is committed, or came too late
	stopping chan struct{} // closed when nothing new may start
	halt     chan struct{} // closed when runs must end
	halting  sync.Once
	lasting  context.Context // Run's, without its end
	work     context.Context // what runs live in

	// What follows belongs to the goroutine of Run.
	busy      int    // slots whose handler runs
	unsettled int    // messages that ran and are not settled
	ended     []*Job // of those, what the settler does not have yet
	look      look
	lastFull  time.Time
	idle      time.Duration // from the last rest to its poll
	poll      *time.Timer
	retry     time.Time // when the next message of this loop can run again
	solo      bool      // a suspect runs alone
	clearing  time.Time // until when the slots empty for a suspect
	probe     time.Time // when to look for suspects while busy
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
	// Run works on the messages, in a goroutine of its own, and sets the ends of
	// the job.
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
		finished: make(chan *Job, o.Concurrency),
		settled:  make(chan *Job, o.Concurrency+o.Batch+1),
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
	var owned sync.WaitGroup
	owned.Go(func() { l.keeper.Run(chores) })
	owned.Go(func() { l.settler.run(chores) })
	owned.Go(func() { l.reap(chores) })
	owned.Go(func() { l.box.listen(chores) })
	err := l.serve(ctx)
	close(l.stopping)
	err = errors.Join(err, l.drain(kill))
	stop()
	owned.Wait()
	kill(ErrStopping)
	return err
}

// serve is the loop itself: claim while there is room and hope, else wait.
func (l *Loop) serve(ctx context.Context) error {
	hints, unsubscribe := l.box.Wait()
	defer unsubscribe()
	for ctx.Err() == nil {
		l.absorb()
		if l.look != lookNot && l.room() > 0 {
			if err := l.claim(ctx); err != nil && l.opts.UntilIdle {
				return err
			}
			continue
		}
		l.hand()
		if l.look == lookNot && l.opts.UntilIdle && l.held() == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-l.halt:
			return nil
		case job := <-l.finished:
			l.finish(job)
		case job := <-l.settled:
			l.settle(job)
		case <-hints:
			l.look = lookFull
		case <-l.poll.C:
			l.look = lookFull
		}
	}
	return nil
}

// absorb takes in all that has happened, so that the next claim is for all the
// slots that are free by now.
func (l *Loop) absorb() {
	for {
		select {
		case job := <-l.finished:
			l.finish(job)
		case job := <-l.settled:
			l.settle(job)
		default:
			return
		}
	}
}

// held is how many messages this loop has leases on.
func (l *Loop) held() int { return l.busy + l.unsettled }

// room is how many messages may be claimed now. What is not settled yet holds
// back claims only when a whole batch of it has gathered.
func (l *Loop) room() int {
	if l.solo || (!l.clearing.IsZero() && l.held() > 0 && time.Now().Before(l.clearing)) {
		return 0
	}
	free := min(l.opts.Concurrency-l.busy, l.opts.Concurrency+l.opts.Batch-l.held())
	return min(free, l.opts.Batch)
}

// claim fills the free slots and decides when to look again.
func (l *Loop) claim(ctx context.Context) error {
	now := time.Now()
	full := l.look == lookFull || now.Sub(l.lastFull) >= l.opts.Poll
	if full {
		l.runner.Refresh(ctx)
		l.lastFull = now
	}
	if l.suspects(ctx, now) {
		return nil
	}
	asked := l.room()
	msgs, err := l.request(ClaimRequest{Limit: asked, ReadyOnly: !full})
	switch {
	case err != nil:
		l.rest(2 * l.idle)
	case len(msgs) == asked:
		l.look = lookReady
	case !full:
		// What was ready is gone; look once for what fell due before resting.
		l.look = lookFull
	case len(msgs) > 0:
		l.rest(l.opts.Poll)
	default:
		l.rest(2 * l.idle)
		if l.held() == 0 {
			l.suspect(ctx)
		}
	}
	l.startAll(ctx, msgs, now)
	return err
}

// rest waits for a hint, the next poll, or the next retry that is known here.
func (l *Loop) rest(d time.Duration) {
	l.look = lookNot
	l.idle = min(d, l.opts.MaxPoll)
	wait := l.idle
	if until := time.Until(l.retry); !l.retry.IsZero() {
		if until > 0 {
			wait = min(wait, until)
		} else {
			// There may be more of them soon.
			l.retry, l.idle = time.Time{}, l.opts.Poll
			wait = min(wait, l.idle)
		}
	}
	l.poll.Reset(wait)
}

// expect notes when a message of the job can run again, so that its retry does
// not wait for a poll.
func (l *Loop) expect(job *Job) {
	for i := range job.Ends {
		e := &job.Ends[i]
		delay := e.Delay
		if e.Verb == Abandon && delay == 0 && e.Message != nil {
			delay = postroom.DefaultBackoff(e.Message.Attempt + 1)
		}
		if (e.Verb != Abandon && e.Verb != Release) || delay <= 0 {
			continue
		}
		// The delay counts from the settling, a moment later.
		at := time.Now().Add(delay + retrySlack)
		if l.retry.IsZero() || at.Before(l.retry) {
			l.retry = at
			if l.look == lookNot {
				l.rest(l.idle)
			}
		}
	}
}

// request claims for this loop. It outlasts the end of Run's context: a claim
// that is cut off leaves leases behind that nobody knows of.
func (l *Loop) request(req ClaimRequest) ([]*postroom.Message, error) {
	ctx, cancel := context.WithTimeout(l.lasting, l.opts.Lease/renewAt)
	defer cancel()
	req.Owner, req.Lease = l.opts.Owner, l.opts.Lease
	var (
		msgs []*postroom.Message
		err  error
	)
	if ex := l.box.exchanger(); ex != nil && req.ReadyOnly && !req.Suspect && len(l.ended) > 0 {
		msgs, err = l.exchange(ctx, ex, req)
	} else {
		l.hand()
		msgs, err = l.box.Claim(ctx, req)
	}
	if err != nil {
		l.keeper.note(err)
		l.box.log.WarnContext(ctx, "claim failed, will try again", "error", err)
	}
	return msgs, err
}

// exchange settles what has ended with the claim. What that leaves open is the
// settler's.
func (l *Loop) exchange(ctx context.Context, ex Exchanger, req ClaimRequest) ([]*postroom.Message, error) {
	n := min(len(l.ended), settleWidth)
	jobs := l.ended[:n:n]
	l.ended = l.ended[n:]
	l.hand()
	var ends []End
	for _, j := range jobs {
		ends = append(ends, j.Ends...)
	}
	results, msgs, err := l.box.exchange(ctx, ex, ends, req)
	if err != nil {
		l.settler.add(jobs...)
		return nil, err
	}
	done, again := conclude(jobs, results)
	l.settler.add(again...)
	for _, j := range done {
		l.settle(j)
	}
	return msgs, nil
}

// hand gives the settler what has ended.
func (l *Loop) hand() {
	if len(l.ended) > 0 {
		l.settler.add(l.ended...)
		l.ended = nil
	}
}

// startAll starts what was claimed. It puts back what came too late, and what an
// earlier run of this process has not let go of.
func (l *Loop) startAll(ctx context.Context, msgs []*postroom.Message, asked time.Time) {
	if ctx.Err() != nil {
		l.putBack(0, msgs...)
		return
	}
	fresh := make([]*postroom.Message, 0, len(msgs))
	for _, m := range msgs {
		if l.box.run(m) {
			fresh = append(fresh, m)
		} else {
			l.putBack(l.opts.Lease/renewAt, m)
		}
	}
	for _, part := range l.runner.Split(fresh) {
		l.start(part, asked)
	}
}

// putBack releases messages that are not run.
func (l *Loop) putBack(delay time.Duration, msgs ...*postroom.Message) {
	if len(msgs) == 0 {
		return
	}
	job := &Job{Messages: msgs, loop: l}
	for _, m := range msgs {
		job.Release(m, delay)
	}
	l.unsettled += len(msgs)
	l.settler.add(job)
}

func (l *Loop) start(part Part, asked time.Time) {
	leases := make([]postroom.Lease, len(part.Messages))
	for i, m := range part.Messages {
		leases[i] = m.Lease
	}
	ctx, hold := l.keeper.Hold(l.work, asked, leases...)
	job := &Job{Messages: part.Messages, loop: l, hold: hold}
	l.busy += len(part.Messages)
	go func() {
		defer func() { l.finished <- job }()
		part.Run(ctx, job)
	}()
}

// finish takes back the slots of a run. Its end is settled with the next claim,
// or by the settler when there is none.
func (l *Loop) finish(job *Job) {
	l.busy -= len(job.Messages)
	l.unsettled += len(job.Messages)
	for _, m := range job.Messages {
		l.box.ran(m)
	}
	l.ended = append(l.ended, job)
	l.expect(job)
}

// settle forgets a job. The next of a group can run now.
func (l *Loop) settle(job *Job) {
	l.unsettled -= len(job.Messages)
	job.drop()
	for _, m := range job.Messages {
		if m.Group != "" {
			l.look = max(l.look, lookReady)
		}
	}
	if l.held() == 0 {
		l.solo = false
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
	for l.held() > 0 {
		l.hand()
		select {
		case job := <-l.finished:
			l.finish(job)
		case job := <-l.settled:
			l.settle(job)
		case <-timeout.C:
			if halt != nil {
				end()
			}
		case <-halt:
			end()
		case <-over:
			return fmt.Errorf("worker stopped with %d handlers that did not return and %d messages that could not be settled; their leases will lapse", l.busy, l.unsettled)
		}
	}
	return nil
}

package box

import (
	"context"
	"slices"
	"time"

	"github.com/postroom/postroom"
)

// maxClaims is how many claims are under way at once: while the database commits
// one, it works on another. Where it writes one at a time, the others would only
// wait.
const maxClaims = 3

// A flight is a claim under way. It takes along what has ended.
type flight struct {
	req   ClaimRequest
	asked time.Time
	jobs  []*Job
	// with settles the jobs: the store may say meanwhile that it had better not.
	with Exchanger
	// hinted: it follows a hint that something is ready.
	hinted bool
	// What it brings back.
	settled []Settled
	msgs    []*postroom.Message
	err     error
}

// held is how many messages this loop has leases on, or may have soon.
func (l *Loop) held() int { return l.busy + l.unsettled + len(l.waiting) + l.coming }

// room is how many messages may be claimed now: for the slots that are free, and
// for those that will be when the claim returns. What is not settled yet holds
// back claims only when a whole batch of it has gathered.
func (l *Loop) room() int {
	if l.solo || (!l.clearing.IsZero() && l.held() > 0 && time.Now().Before(l.clearing)) {
		return 0
	}
	slots := l.opts.Concurrency + l.pace.ahead(l.opts.Concurrency, maxClaims*l.opts.Batch)
	free := slots - l.busy - len(l.waiting) - l.coming
	return min(free, slots+l.opts.Batch-l.held(), l.opts.Batch)
}

// mayClaim reports whether a claim may start. One more does only behind those that
// are sure to find something, and not for a few messages.
func (l *Loop) mayClaim() bool {
	if l.look == lookNot {
		return false
	}
	room := l.room()
	if l.flying == 0 {
		return room > 0
	}
	return l.look == lookReady && l.flying < maxClaims && !l.keeper.serial && 2*room >= l.coming
}

// early reports whether the next claim starts before what the last one brought:
// the database works meanwhile. It must not be a smaller one for that, nor one
// before which this goroutine asks the database something itself: a handler's
// transaction may have the only connection. Where several are under way, the others
// do so.
func (l *Loop) early(ctx context.Context) bool {
	now := time.Now()
	return l.keeper.serial && !l.over && ctx.Err() == nil && !l.full(now) && now.Before(l.probe) && l.mayClaim() && l.room() == l.opts.Batch
}

// full reports whether the next claim looks everywhere.
func (l *Loop) full(now time.Time) bool {
	return l.look == lookFull || now.Sub(l.lastFull) >= l.opts.Poll
}

// claim starts a claim for the room there is. It is false if nothing changed.
func (l *Loop) claim(ctx context.Context) bool {
	now := time.Now()
	full := l.full(now)
	if full {
		l.runner.Refresh(ctx)
		l.lastFull = now
	}
	if l.suspects(ctx, now) {
		return true
	}
	// Not the time from before: to look for suspects may have taken long.
	f := &flight{asked: time.Now(), hinted: l.follow && l.look == lookReady, req: ClaimRequest{Limit: l.room(), ReadyOnly: !full}}
	if l.look == lookFull || f.hinted {
		l.look = lookNot
	}
	l.hinted, l.follow = lookNot, false
	if f.with = l.box.exchanger(); f.req.ReadyOnly && f.with != nil {
		n := len(l.ended)
		if !l.keeper.serial {
			n = min(n, settleWidth) // else the rest would wait for this one, for a commit of its own
		}
		f.jobs, l.ended = slices.Clone(l.ended[:n]), slices.Delete(l.ended, 0, n)
	}
	l.hand()
	l.flying++
	l.coming += f.req.Limit
	go func() {
		l.fetch(f)
		l.landed <- f
	}()
	return true
}

// fetch claims, and settles what the flight took along with the same commit. It
// outlasts the end of Run's context: a claim that is cut off leaves leases
// behind that nobody knows of.
func (l *Loop) fetch(f *flight) {
	if len(f.jobs) == 0 {
		f.msgs, f.err = l.request(f.req)
		return
	}
	ctx, cancel := context.WithTimeout(l.lasting, l.opts.Lease/renewAt)
	defer cancel()
	req := f.req
	req.Owner, req.Lease = l.opts.Owner, l.opts.Lease
	f.settled, f.msgs, f.err = l.box.exchange(ctx, f.with, ends(f.jobs), req)
}

// request claims for this loop.
func (l *Loop) request(req ClaimRequest) ([]*postroom.Message, error) {
	ctx, cancel := context.WithTimeout(l.lasting, l.opts.Lease/renewAt)
	defer cancel()
	req.Owner, req.Lease = l.opts.Owner, l.opts.Lease
	return l.box.Claim(ctx, req)
}

// land takes in what a claim brought, and decides when to look again.
func (l *Loop) land(ctx context.Context, f *flight) error {
	l.flying--
	l.coming -= f.req.Limit
	l.pace.flown(time.Since(f.asked))
	if f.err != nil {
		l.failed(ctx, f.err)
		l.settler.add(f.jobs...)
		l.rest(2 * l.idle)
		return f.err
	}
	done, again := conclude(f.jobs, f.settled)
	l.settler.add(again...)
	l.settle(done)
	l.take(ctx, f.msgs, f.asked)
	switch {
	case len(f.msgs) == f.req.Limit:
		l.more()
	case f.hinted && len(f.msgs) > 0:
		l.rest(l.opts.Poll) // all that the hint can have meant
	case f.req.ReadyOnly:
		// What was ready is gone; look once for what fell due before resting.
		l.look = lookFull
	case len(f.msgs) > 0:
		l.rest(l.opts.Poll)
	default:
		l.rest(2 * l.idle)
		if l.held() == 0 && !l.over {
			l.suspect(ctx)
		}
	}
	if l.early(ctx) {
		l.claim(ctx)
	}
	l.fill()
	return nil
}

func (l *Loop) failed(ctx context.Context, err error) {
	l.keeper.note(err)
	l.box.log.WarnContext(ctx, "claim failed, will try again", "error", err)
}

// hint follows a hint. What is ready already takes no look at everything. A claim
// under way may not have seen it, so that it is remembered in any case.
func (l *Loop) hint(full bool) {
	want := lookReady
	if full {
		want = lookFull
	}
	l.follow = l.follow || l.look == lookNot
	l.look, l.hinted = max(l.look, want), max(l.hinted, want)
}

// more says that something is ready, as far as is known.
func (l *Loop) more() {
	l.look, l.follow = max(l.look, lookReady), false
}

// rest waits for a hint, the next poll, or the next retry that is known here. A
// hint that came while the last look was under way is followed at once.
func (l *Loop) rest(d time.Duration) {
	l.look, l.follow = l.hinted, l.hinted == lookReady
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

// hand gives the settler what has ended.
func (l *Loop) hand() {
	if len(l.ended) > 0 {
		l.settler.add(l.ended...)
		l.ended = nil
	}
}

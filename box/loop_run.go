package box

import (
	"context"
	"time"

	"github.com/postroom/postroom"
)

// claimed is a message that waits for a slot. It was claimed for one that was
// sure to be free soon, and goes back if that turns out to be wrong.
type claimed struct {
	*postroom.Message
	*landing
}

// A landing is when a claim was made, and when it brought its messages.
type landing struct{ asked, at time.Time }

// take lets messages wait for their slots, which fill gives them. It puts back what
// came too late, and what an earlier run of this process has not let go of.
func (l *Loop) take(ctx context.Context, msgs []*postroom.Message, asked time.Time) {
	if l.over || ctx.Err() != nil {
		l.putBack(0, msgs...)
		return
	}
	landed := &landing{asked, time.Now()}
	for _, m := range msgs {
		if l.box.running.begin(m) {
			l.waiting = append(l.waiting, claimed{m, landed})
		} else {
			l.putBack(l.opts.Lease/renewAt, m)
		}
	}
}

// fill starts what waits, as far as slots are free.
func (l *Loop) fill() {
	for {
		n := min(l.opts.Concurrency-l.busy, l.opts.Batch, len(l.waiting))
		if n <= 0 {
			break
		}
		msgs, asked := l.current(l.waiting[:n])
		clear(l.waiting[:n])
		l.waiting = l.waiting[n:]
		l.start(l.runner.Split(msgs), asked)
	}
	if len(l.waiting) > 0 {
		l.patience.Reset(l.longest() - time.Since(l.waiting[0].at))
	}
}

// current gives the messages whose leases last, and when the first of them was
// asked for: the later of two claims may return first.
func (l *Loop) current(all []claimed) (msgs []*postroom.Message, asked time.Time) {
	msgs = make([]*postroom.Message, 0, len(all))
	now := time.Now()
	for _, c := range all {
		if now.Sub(c.asked) >= l.opts.Lease {
			l.box.running.forget(c.Message) // by now it may be somebody else's
			continue
		}
		msgs = append(msgs, c.Message)
		if asked.IsZero() || c.asked.Before(asked) {
			asked = c.asked
		}
	}
	return msgs, asked
}

// longest is how long a message may wait for a slot: others could run it.
func (l *Loop) longest() time.Duration { return min(l.opts.Poll, l.opts.Lease/renewAt) }

// giveBack releases what has waited too long, with all that came behind it.
func (l *Loop) giveBack() {
	if len(l.waiting) == 0 {
		return
	}
	if left := l.longest() - time.Since(l.waiting[0].at); left > 0 {
		l.patience.Reset(left)
		return
	}
	l.pace.stuck(l.opts.Poll)
	l.release()
}

// release puts back all that waits.
func (l *Loop) release() {
	for _, c := range l.waiting {
		l.box.running.forget(c.Message)
		l.putBack(0, c.Message)
	}
	l.waiting = nil
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

// start has parts run.
func (l *Loop) start(parts []Part, asked time.Time) {
	jobs := make([]*Job, len(parts))
	now := time.Now()
	for i, part := range parts {
		jobs[i] = l.job(part, asked, now)
		l.busy += len(part.Messages)
	}
	l.runners.start(jobs)
}

func (l *Loop) job(part Part, asked, now time.Time) *Job {
	job := &Job{Messages: part.Messages, loop: l, run: part.Run, began: now}
	if len(part.Messages) == 1 { // which may be one of a slice that would keep all others in memory
		job.message[0] = part.Messages[0]
		job.Messages, job.hold = job.message[:], &job.kept
	} else { // as would a context that outlives the run
		job.hold = new(Hold)
	}
	leases := job.lease[:0]
	for _, m := range part.Messages {
		leases = append(leases, m.Lease)
	}
	l.keeper.keep(l.work, job.hold, asked, leases)
	return job
}

// finish takes back the slots of runs. Their ends are settled with the next claim,
// or by the settler when there is none.
func (l *Loop) finish(jobs []*Job) {
	if len(jobs) == 0 {
		return
	}
	now := time.Now()
	for _, job := range jobs {
		l.busy -= len(job.Messages)
		l.unsettled += len(job.Messages)
		l.pace.ran(now.Sub(job.began))
		for _, m := range job.Messages {
			l.box.running.end(m)
		}
		l.expect(job)
	}
	l.ended = append(l.ended, jobs...)
	l.fill()
}

// settle forgets jobs. The next of a group can run now.
func (l *Loop) settle(jobs []*Job) {
	for _, job := range jobs {
		l.unsettled -= len(job.Messages)
		job.drop()
		for _, m := range job.Messages {
			if m.Group != "" {
				l.more()
			}
		}
	}
	if l.held() == 0 {
		l.solo = false
	}
}

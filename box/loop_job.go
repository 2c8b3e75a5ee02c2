package box

import (
	"context"
	"sync"
	"time"

	"github.com/postroom/postroom"
)

// A Job is what one call of a handler works on: a message, or several.
type Job struct {
	Messages []*postroom.Message
	// Ends are what becomes of the messages. One without an end was settled in
	// the handler's transaction, or is left until its lease lapses.
	Ends []End

	loop *Loop
	run  func(ctx context.Context, job *Job)
	// hold is nil when the messages were only put back.
	hold  *Hold
	began time.Time
	// Most jobs have one message.
	kept    Hold
	message [1]*postroom.Message
	about   messageContext
	lease   [1]postroom.Lease
	end     [1]End
}

// About is WithMessage for a job of one message, which calls it once.
func (j *Job) About(ctx context.Context) context.Context {
	j.about = messageContext{ctx, j.Messages[0]}
	return &j.about
}

// Release ends the lease of a message that was not run, at no cost.
func (j *Job) Release(m *postroom.Message, delay time.Duration) {
	j.End(m, Settlement{Verb: Release, Delay: delay})
}

// End says what becomes of a message.
func (j *Job) End(m *postroom.Message, s Settlement) {
	s.Lease, s.Grouped = m.Lease, m.Group != ""
	if j.Ends == nil {
		j.Ends = j.end[:0]
	}
	j.Ends = append(j.Ends, End{Settlement: s, Message: m})
}

// Lost reports whether a lease of the job has ended; then its context has too.
func (j *Job) Lost() bool { return j.loop.keeper.Lost(j.hold) }

// Stopping is closed when nothing new may start.
func (j *Job) Stopping() <-chan struct{} { return j.loop.stopping }

// Writing says that a transaction of the job is open, until done is called.
func (j *Job) Writing() (done func()) { return j.loop.keeper.Writing() }

// Final says whether the last statements of the job's transaction are in flight.
func (j *Job) Final(final bool) { j.loop.keeper.Final(j.hold, final) }

// drop lets go of the messages.
func (j *Job) drop() {
	if j.hold == nil {
		return
	}
	j.loop.keeper.Drop(j.hold)
	for _, m := range j.Messages {
		j.loop.box.running.forget(m)
	}
}

// runs are the deliveries that run in this process, by Seq.
type runs struct {
	mu  sync.Mutex
	all map[int64]delivery
}

// A delivery that is over has returned, and its end may be on its way: the
// message may be claimed again before this process hears of that.
type delivery struct {
	*postroom.Message
	over bool
}

// begin notes that a delivery runs in this process. It is false while an earlier
// delivery of the message does.
func (r *runs) begin(m *postroom.Message) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d, there := r.all[m.Lease.Seq]; there && !d.over {
		return false
	}
	if r.all == nil {
		r.all = map[int64]delivery{}
	}
	r.all[m.Lease.Seq] = delivery{m, false}
	return true
}

// end notes that the run of a delivery has returned.
func (r *runs) end(m *postroom.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all[m.Lease.Seq].Message == m {
		r.all[m.Lease.Seq] = delivery{m, true}
	}
}

// forget forgets a delivery, but not a later one of the same message.
func (r *runs) forget(m *postroom.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all[m.Lease.Seq].Message == m {
		delete(r.all, m.Lease.Seq)
	}
}

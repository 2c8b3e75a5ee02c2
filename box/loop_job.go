package box

import (
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
	// hold is nil when the messages were only put back.
	hold  *Hold
	began time.Time
}

// Release ends the lease of a message that was not run, at no cost.
func (j *Job) Release(m *postroom.Message, delay time.Duration) {
	j.End(m, Settlement{Verb: Release, Delay: delay})
}

// End says what becomes of a message.
func (j *Job) End(m *postroom.Message, s Settlement) {
	s.Lease = m.Lease
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
		j.loop.box.forget(m)
	}
}

// over stands for a delivery whose run has returned and whose end may be on its
// way: the message may be claimed again before this process hears of that.
type over struct{ m *postroom.Message }

// run notes that a delivery runs in this process. It is false while an earlier
// delivery of the message does.
func (b *Box) run(m *postroom.Message) bool {
	for {
		old, there := b.running.LoadOrStore(m.Lease.Seq, m)
		if !there {
			return true
		}
		if _, ended := old.(over); !ended {
			return false
		}
		if b.running.CompareAndSwap(m.Lease.Seq, old, m) {
			return true
		}
	}
}

// ran notes that the run of a delivery has returned.
func (b *Box) ran(m *postroom.Message) { b.running.CompareAndSwap(m.Lease.Seq, m, over{m}) }

// forget forgets a delivery, but not a later one of the same message.
func (b *Box) forget(m *postroom.Message) {
	b.running.CompareAndDelete(m.Lease.Seq, m)
	b.running.CompareAndDelete(m.Lease.Seq, over{m})
}

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
	hold *Hold
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
		j.loop.box.running.Delete(m.Lease.Seq)
	}
}

package inboxtest

import (
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
)

// maxSteps keeps a handler that asks for retries without end from hanging the
// test.
const maxSteps = 1000

// RunUntilIdle handles what is ready, with all that follows from it at once.
// Messages that wait for their time are left.
func (in *Inbox) RunUntilIdle(mux *inbox.Mux) {
	in.t.Helper()
	in.RunWith(mux, inbox.WorkerOptions{})
}

// RunWith is RunUntilIdle with options of the worker.
func (in *Inbox) RunWith(mux *inbox.Mux, o inbox.WorkerOptions) {
	in.t.Helper()
	if err := inbox.NewWorker(in.Inbox, mux, o).RunUntilIdle(in.t.Context()); err != nil {
		in.t.Fatalf("run: %v", err)
	}
}

// RunToEnd handles messages until none waits any more, moving the clock to
// whatever comes next: due times, retries, messages without a handler. It ends
// the test when that goes on for too long.
func (in *Inbox) RunToEnd(mux *inbox.Mux) {
	in.t.Helper()
	for range maxSteps {
		in.RunUntilIdle(mux)
		next, found := in.next()
		if !found {
			return
		}
		in.Clock.advanceTo(next)
	}
	in.t.Fatalf("messages still wait after the clock was moved %d times; is a topic without a handler?", maxSteps)
}

// next is when the first of the waiting messages can run.
func (in *Inbox) next() (next time.Time, found bool) {
	in.t.Helper()
	for r, err := range in.All(in.t.Context(), inbox.Filter{State: postroom.StateProcessing}) {
		if err != nil {
			in.t.Fatalf("list messages: %v", err)
		}
		waits := r.Stage == postroom.StageScheduled || r.Stage == postroom.StageDeferred
		if waits && (!found || r.NextAt.Before(next)) {
			next, found = r.NextAt, true
		}
	}
	return next, found
}

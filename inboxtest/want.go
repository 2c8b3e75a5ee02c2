package inboxtest

import (
	"errors"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
)

// Record gives all that is known of a message, or nil when it is unknown.
func (in *Inbox) Record(source, id string) *inbox.Record {
	in.t.Helper()
	r, err := in.Get(in.t.Context(), source, id)
	if errors.Is(err, postroom.ErrNotFound) {
		return nil
	}
	if err != nil {
		in.t.Fatalf("get %s/%s: %v", source, id, err)
	}
	return r
}

// WantDone says that a message must be done, after this many runs; 0 means any
// number.
func (in *Inbox) WantDone(source, id string, runs int) {
	in.t.Helper()
	r := in.want(source, id, postroom.StateDone)
	if r != nil && runs > 0 && r.Done.Runs != runs {
		in.t.Errorf("%s/%s is done after %d runs, want %d", source, id, r.Done.Runs, runs)
	}
}

// WantDiscarded says that a message must have ended without an effect.
func (in *Inbox) WantDiscarded(source, id string) {
	in.t.Helper()
	if r := in.want(source, id, postroom.StateDone); r != nil && !r.Done.Discarded {
		in.t.Errorf("%s/%s is done, and was not discarded", source, id)
	}
}

// WantDead says that a message must have failed for good, and gives its error.
func (in *Inbox) WantDead(source, id string) (lastError string) {
	in.t.Helper()
	if r := in.want(source, id, postroom.StateDead); r != nil {
		return r.LastError
	}
	return ""
}

// WantWaiting says that a message must wait for its next run, and gives the
// number of those that failed.
func (in *Inbox) WantWaiting(source, id string) (attempt int) {
	in.t.Helper()
	if r := in.want(source, id, postroom.StateProcessing); r != nil {
		return r.Attempt
	}
	return 0
}

// WantUnknown says that a message must never have arrived.
func (in *Inbox) WantUnknown(source, id string) {
	in.t.Helper()
	if r := in.Record(source, id); r != nil {
		in.t.Errorf("%s/%s is %s, want it unknown", source, id, r.State)
	}
}

// want gives the record if its state is right.
func (in *Inbox) want(source, id string, state postroom.State) *inbox.Record {
	in.t.Helper()
	r := in.Record(source, id)
	switch {
	case r == nil:
		in.t.Errorf("%s/%s is unknown, want it %s", source, id, state)
		return nil
	case r.State != state:
		in.t.Errorf("%s/%s is %s (%s), want it %s; attempt %d, last error %q", source, id, r.State, r.Stage, state, r.Attempt, r.LastError)
		return nil
	}
	return r
}

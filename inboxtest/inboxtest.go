// Package inboxtest tests handlers without a database: an inbox in memory, a
// clock that the test moves, and assertions on what became of messages.
//
//	in := inboxtest.New(t, inbox.Options{})
//	in.DeliverTwice(postroom.Message{Source: "stripe", ID: "evt_1", Topic: "paid", Payload: body})
//	in.RunToEnd(mux)
//	in.WantDone("stripe", "evt_1", 1)
package inboxtest

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/memstore"
)

// An Inbox is an inbox in memory. Its methods end the test when they fail.
type Inbox struct {
	*inbox.Inbox
	// Clock is the clock of the store: due times, retries, leases and retention
	// go by it.
	Clock *Clock
	// Store can begin transactions, for OnceTx and ReceiveTx.
	Store *memstore.Store

	t testing.TB
}

// New makes an empty inbox of the consumer "test". It logs to the test.
func New(t testing.TB, o inbox.Options) *Inbox {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	clock := &Clock{now: time.Now().UTC().Truncate(time.Microsecond)}
	store := memstore.New(memstore.Options{Now: clock.Now})
	in, err := inbox.New(store, "test", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Inbox{Inbox: in, Clock: clock, Store: store, t: t}
}

// A Clock stands still until it is moved. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// Now gives its time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves it forward.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// advanceTo moves it forward to a time, never back.
func (c *Clock) advanceTo(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.After(c.now) {
		c.now = t
	}
}

// Deliver receives a message, as its sender would have it.
func (in *Inbox) Deliver(m postroom.Message) postroom.Result {
	in.t.Helper()
	res, err := in.Receive(in.t.Context(), m)
	if err != nil {
		in.t.Fatalf("deliver %s/%s: %v", m.Source, m.ID, err)
	}
	return res
}

// DeliverTwice receives a message two times, as senders do that missed the
// acknowledgement. The second must be recognised.
func (in *Inbox) DeliverTwice(m postroom.Message) {
	in.t.Helper()
	in.Deliver(m)
	if res := in.Deliver(m); res.Outcome != postroom.Duplicate {
		in.t.Fatalf("the second delivery of %s/%s is %s, want duplicate", m.Source, m.ID, res.Outcome)
	}
}

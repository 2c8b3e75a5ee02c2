package transporttest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom"
)

// A suite is one running case.
type suite struct {
	*testing.T
	Transport
	g Guarantees
}

func newSuite(t *testing.T, g Guarantees, tr Transport) *suite {
	tr.Topic = cmp.Or(tr.Topic, "transporttest.topic")
	tr.Patience = cmp.Or(tr.Patience, 30*time.Second)
	return &suite{T: t, Transport: tr, g: g}
}

func (c *suite) message(id string) *postroom.Message {
	return &postroom.Message{Source: "transporttest", ID: id, Topic: c.Topic, Payload: []byte("payload of " + id)}
}

func (c *suite) messages(n int, group string) []*postroom.Message {
	msgs := make([]*postroom.Message, n)
	for i := range msgs {
		msgs[i] = c.message(fmt.Sprintf("m-%03d", i))
		msgs[i].Group = group
	}
	return msgs
}

// send sends messages, each of which must be confirmed.
func (c *suite) send(msgs ...*postroom.Message) {
	c.Helper()
	if err := c.Sender.Send(c.Context(), msgs); err != nil {
		c.Fatalf("send: %v", err)
	}
}

// corrupt puts bytes on the way, where the transport has a way for bytes.
func (c *suite) corrupt(raw []byte) {
	c.Helper()
	if c.Corrupt == nil {
		c.Skip("no bytes travel on this transport")
	}
	if err := c.Corrupt(c.Context(), raw); err != nil {
		c.Fatalf("corrupt: %v", err)
	}
}

// usable expects a message that an inbox can take in.
func (c *suite) usable(m postroom.Message) {
	c.Helper()
	m.Consumer = "transporttest"
	if err := m.Validate(true, max(len(m.Payload), 1)); err != nil {
		c.Errorf("an inbox can't take it in: %v", err)
	}
}

// An ear receives, and keeps what came.
type ear struct {
	*suite
	stop func()

	mu  sync.Mutex
	got []postroom.Message
	// refuse gives the error of a message that is not taken in.
	refuse func(m *postroom.Message) error
	heard  chan struct{}
}

// listen receives until the case ends, or stop is called.
func (c *suite) listen(refuse func(m *postroom.Message) error) *ear {
	c.Helper()
	e := &ear{suite: c, refuse: refuse, heard: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(c.Context())
	done := make(chan error, 1)
	go func() { done <- c.Receiver.Receive(ctx, e.deliver) }()
	e.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				c.Errorf("receive gave %v, want nil: its context ended, and nothing was wrong", err)
			}
		case <-time.After(c.Patience):
			c.Errorf("receive did not return within %v of the end of its context", c.Patience)
		}
	})
	c.Cleanup(e.stop)
	return e
}

func (e *ear) deliver(_ context.Context, msgs []postroom.Message) ([]postroom.Result, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	results := make([]postroom.Result, len(msgs))
	var failed error
	for i := range msgs {
		if e.refuse != nil {
			results[i].Err = e.refuse(&msgs[i])
		}
		if results[i].Err != nil {
			failed = results[i].Err
			continue
		}
		results[i].Outcome = postroom.Accepted
		e.got = append(e.got, msgs[i])
	}
	select {
	case e.heard <- struct{}{}:
	default:
	}
	return results, failed
}

// times is how often a message came.
func (e *ear) times(id string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, m := range e.got {
		if m.ID == id {
			n++
		}
	}
	return n
}

// distinct gives what came, each once, in the order of its first arrival.
func (e *ear) distinct() []postroom.Message {
	e.mu.Lock()
	defer e.mu.Unlock()
	seen := map[string]bool{}
	var all []postroom.Message
	for _, m := range e.got {
		if !seen[m.ID] {
			all = append(all, m)
		}
		seen[m.ID] = true
	}
	return all
}

// wait waits for n distinct messages. Duplicates are no fault: a transport
// delivers at least once.
func (e *ear) wait(n int) []postroom.Message {
	e.Helper()
	limit := time.After(e.Patience)
	for {
		if all := e.distinct(); len(all) >= n {
			if len(all) > n {
				e.Errorf("%d distinct messages came, %d were sent", len(all), n)
			}
			return all
		}
		select {
		case <-e.heard:
		case <-limit:
			e.Fatalf("%d of %d messages came within %v: %v", len(e.distinct()), n, e.Patience, ids(e.distinct()))
		}
	}
}

func ids(msgs []postroom.Message) []string {
	var names []string
	for _, m := range msgs {
		names = append(names, m.ID)
	}
	return names
}

// same expects a message as it was sent.
func (c *suite) same(got postroom.Message, want *postroom.Message) {
	c.Helper()
	for _, f := range []struct{ name, got, want string }{
		{"source", got.Source, want.Source},
		{"id", got.ID, want.ID},
		{"topic", got.Topic, want.Topic},
	} {
		if f.got != f.want {
			c.Errorf("%s of %s is %q, want %q: identity goes from end to end", f.name, want.ID, f.got, f.want)
		}
	}
	if !bytes.Equal(got.Payload, want.Payload) || got.Payload == nil {
		c.Errorf("payload of %s has %d bytes, want the %d that were sent; an empty one is not nil", want.ID, len(got.Payload), len(want.Payload))
	}
	if !c.g.Headers {
		return
	}
	for _, f := range []struct{ name, got, want string }{
		{"group", got.Group, want.Group},
		{"correlation id", got.CorrelationID, want.CorrelationID},
		{"causation id", got.CausationID, want.CausationID},
	} {
		if f.got != f.want {
			c.Errorf("%s of %s is %q, want %q", f.name, want.ID, f.got, f.want)
		}
	}
	if !got.OccurredAt.Equal(want.OccurredAt) {
		c.Errorf("%s occurred at %v, want %v", want.ID, got.OccurredAt, want.OccurredAt)
	}
	if len(want.Headers) > 0 && !maps.Equal(got.Headers, want.Headers) {
		c.Errorf("headers of %s are %v, want %v", want.ID, got.Headers, want.Headers)
	}
}

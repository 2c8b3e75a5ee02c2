// Package bus carries messages between the modules of one program, without a
// broker: from the outbox of one module into the inboxes of others, each with its
// own tables, on one database or several.
//
//	b := bus.New()
//	err := b.Subscribe(shipping, "order.paid")             // an *inbox.Inbox
//	relay := outbox.NewRelay(orders, outbox.To(b), …)      // an *outbox.Outbox
//
// A message is sent when each of its subscribers has it in its own inbox, which
// deduplicates by itself: while one of them can't take it, it is offered again to
// all, and the others recognise it.
//
// The subscribers are those of this process at the moment of sending. One that is
// added later gets what is sent from then on; a Rewind of the outbox gives it
// what was sent before, and the others recognise that as well. One that is
// removed, by a release that no longer subscribes it, is no longer waited for;
// what its inbox still holds stays there, visible, until a worker handles it or
// an operator discards it. One that is renamed is one removed and one added: it
// does not know what it received under its old name.
package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/inbox"
)

// A Bus gives messages to the inboxes that subscribe to their topics. It is a
// postroom.Sender, and safe for concurrent use.
type Bus struct {
	mu   sync.RWMutex
	subs []*subscription
}

var _ postroom.Sender = (*Bus)(nil)

// subscription is an inbox and the topics that it takes.
type subscription struct {
	in     *inbox.Inbox
	topics box.Topics[struct{}]
}

func (s *subscription) takes(topic string) bool {
	_, takes := s.topics.Find(topic)
	return takes
}

// New makes a Bus without subscribers.
func New() *Bus { return &Bus{} }

// Subscribe lets an inbox have the messages of some topics. Patterns are those of
// inbox.Mux: order.paid, order.* or *. The subscriber's name is the consumer of
// the inbox; a name subscribes once.
func (b *Bus) Subscribe(in *inbox.Inbox, patterns ...string) error {
	if in == nil {
		return &postroom.ArgumentError{Argument: "inbox", Reason: "is nil"}
	}
	if len(patterns) == 0 {
		return fmt.Errorf("subscribe %s: %w", in.Consumer(), &postroom.ArgumentError{Argument: "patterns", Reason: "are missing"})
	}
	s := &subscription{in: in}
	for _, p := range patterns {
		if err := box.CheckPattern(p); err != nil {
			return fmt.Errorf("subscribe %s to %q: %w", in.Consumer(), p, err)
		}
		s.topics.Set(p, struct{}{})
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.find(in.Consumer()) >= 0 {
		return fmt.Errorf("subscribe %s: %w", in.Consumer(), &postroom.ArgumentError{Argument: "inbox", Reason: "has a name that subscribes already"})
	}
	b.subs = append(slices.Clone(b.subs), s)
	return nil
}

// Unsubscribe takes a subscriber off the bus, and reports whether it was on it.
func (b *Bus) Unsubscribe(consumer string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := b.find(consumer)
	if i < 0 {
		return false
	}
	b.subs = slices.Delete(slices.Clone(b.subs), i, i+1)
	return true
}

func (b *Bus) find(consumer string) int {
	return slices.IndexFunc(b.subs, func(s *subscription) bool { return s.in.Consumer() == consumer })
}

// subscribers gives a list that later calls don't change.
func (b *Bus) subscribers() []*subscription {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.subs
}

// Send gives messages to their subscribers. A message is confirmed when each of
// them has it; one that nobody subscribes to is discarded, which its record says.
func (b *Bus) Send(ctx context.Context, msgs []*postroom.Message) error {
	subs := b.subscribers()
	failures := make([][]failure, len(subs))
	var wg sync.WaitGroup
	for i, s := range subs {
		wg.Go(func() { failures[i] = s.receive(ctx, msgs) })
	}
	wg.Wait()
	errs := make(postroom.SendErrors, len(msgs))
	for i, m := range msgs {
		if !slices.ContainsFunc(subs, func(s *subscription) bool { return s.takes(m.Topic) }) {
			errs[i] = postroom.Discard(fmt.Sprintf("nobody subscribes to topic %q", m.Topic))
		}
	}
	for _, f := range slices.Concat(failures...) {
		errs[f.message] = worse(errs[f.message], f.err)
	}
	return errs.Err()
}

// A failure is why a subscriber did not take a message.
type failure struct {
	message int
	err     error
}

// receive gives a subscriber those of the messages that it takes.
func (s *subscription) receive(ctx context.Context, msgs []*postroom.Message) []failure {
	var (
		taken []postroom.Message
		at    []int
	)
	for i, m := range msgs {
		if s.takes(m.Topic) {
			taken, at = append(taken, arriving(*m)), append(at, i)
		}
	}
	if len(taken) == 0 {
		return nil
	}
	results, err := s.in.ReceiveAll(ctx, taken)
	var failures []failure
	for i, at := range at {
		reason := err
		if i < len(results) {
			reason = results[i].Err
		}
		if reason != nil {
			failures = append(failures, failure{at, s.refused(reason)})
		}
	}
	return failures
}

// refused says who did not take a message. What can't be taken by its nature is
// not offered again.
func (s *subscription) refused(reason error) error {
	err := fmt.Errorf("subscriber %s: %w", s.in.Consumer(), reason)
	var arg *postroom.ArgumentError
	if errors.As(reason, &arg) {
		return postroom.Permanent(err)
	}
	return err
}

// worse joins the errors of two subscribers. A message is offered again as long
// as one of them may still take it.
func worse(a, b error) error {
	if a == nil {
		return b
	}
	permanent := func(err error) bool {
		v, _, _ := postroom.VerdictOf(err)
		return v == postroom.VerdictDead
	}
	switch {
	case permanent(a) == permanent(b):
		return errors.Join(a, b)
	case permanent(a):
		return b
	default:
		return a
	}
}

// arriving is a message as its subscribers see it: it has waited for its time.
func arriving(m postroom.Message) postroom.Message {
	m.DueAt = time.Time{}
	return m
}

// PublishTx gives messages to their subscribers inside your transaction, without
// an outbox: they are there if and only if you commit. All of the subscribers
// must be on the database of the transaction.
//
// A message without an ID gets a new one. Inside a handler the causation is the
// handler's message, and correlation and trace are taken over from it.
func (b *Bus) PublishTx(ctx context.Context, tx postroom.Tx, msgs ...postroom.Message) error {
	complete := make([]postroom.Message, len(msgs))
	cause, caused := box.MessageFrom(ctx)
	for i, m := range msgs {
		m.ID = cmp.Or(m.ID, postroom.NewID())
		if caused {
			m = box.Follow(m, cause)
		}
		complete[i] = m
	}
	for _, s := range b.subscribers() {
		taken := slices.DeleteFunc(slices.Clone(complete), func(m postroom.Message) bool { return !s.takes(m.Topic) })
		if _, err := s.in.ReceiveAllTx(ctx, tx, taken); err != nil {
			return fmt.Errorf("publish to %s: %w", s.in.Consumer(), err)
		}
		box.OnCommit(ctx, s.in.Box().Wake)
	}
	return nil
}

package inbox

import (
	"context"
	"iter"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// What operators look at.
type (
	// A Record is all that is known of a message.
	Record = box.Record
	// A Filter selects messages of the inbox. Its Consumer is ignored.
	Filter = box.Filter
	// An AuditFilter selects operator actions.
	AuditFilter = box.AuditFilter
	// An AuditEntry is one action of an operator.
	AuditEntry = box.AuditEntry
	// Stats is an overview of the inbox.
	Stats = box.Stats
	// An Order says who moves a message by hand, and why.
	Order = box.Order
)

// Get gives the whole record of a message, or postroom.ErrNotFound.
func (in *Inbox) Get(ctx context.Context, source, id string) (*Record, error) {
	return in.box.Get(ctx, source, id)
}

// List gives one page of messages in ascending order of Seq. The next page
// begins after the last Seq.
func (in *Inbox) List(ctx context.Context, f Filter) ([]*Record, error) { return in.box.List(ctx, f) }

// All gives all messages that a filter selects, fetching page by page. It ends
// after an error.
func (in *Inbox) All(ctx context.Context, f Filter) iter.Seq2[*Record, error] {
	return in.box.All(ctx, f)
}

// Dead gives all dead letters.
func (in *Inbox) Dead(ctx context.Context) iter.Seq2[*Record, error] {
	return in.box.All(ctx, Filter{State: postroom.StateDead})
}

// Audit gives the newest operator actions first.
func (in *Inbox) Audit(ctx context.Context, f AuditFilter) ([]AuditEntry, error) {
	return in.box.Audit(ctx, f)
}

// Requeue gives a dead message a fresh start. One that waits is left as it is;
// a done one is refused with postroom.ErrDone, a leased one with ErrLeased.
func (in *Inbox) Requeue(ctx context.Context, source, id string, o Order) error {
	return in.move(ctx, o.Move(in.box.Key(source, id), box.Requeue))
}

// RequeueAll requeues the dead messages that a filter selects, and gives how
// many. The filter's state, limit and payload setting are ignored.
func (in *Inbox) RequeueAll(ctx context.Context, f Filter, o Order) (int, error) {
	f.State, f.WithPayload = postroom.StateDead, false
	return in.box.MoveAll(ctx, f, o.Move(postroom.Key{}, box.Requeue))
}

// Replay requeues a message even if it is done, which repeats its effect. It
// keeps its ID and starts with attempt 0. A message whose payload is past its
// retention gives postroom.ErrPurged.
func (in *Inbox) Replay(ctx context.Context, source, id string, o Order) error {
	return in.move(ctx, o.Move(in.box.Key(source, id), box.Replay))
}

// Discard ends a message without an effect: it is Done, marked discarded.
func (in *Inbox) Discard(ctx context.Context, source, id string, o Order) error {
	return in.move(ctx, o.Move(in.box.Key(source, id), box.Discard))
}

// DiscardAll discards the messages that a filter selects, and gives how many;
// dead ones, unless the filter names another state.
func (in *Inbox) DiscardAll(ctx context.Context, f Filter, o Order) (int, error) {
	if f.State == postroom.StateNone {
		f.State = postroom.StateDead
	}
	f.WithPayload = false
	return in.box.MoveAll(ctx, f, o.Move(postroom.Key{}, box.Discard))
}

// Pause keeps all workers of this consumer, in all processes, from handling a
// topic. Handlers that run already finish.
func (in *Inbox) Pause(ctx context.Context, topic string, o Order) error {
	return in.box.Pause(ctx, topic, o.Actor, o.Reason)
}

// Resume lets workers handle a topic again.
func (in *Inbox) Resume(ctx context.Context, topic string, o Order) error {
	return in.box.Resume(ctx, topic, o.Actor)
}

// Paused gives the topics that are paused.
func (in *Inbox) Paused(ctx context.Context) ([]string, error) { return in.box.Paused(ctx) }

// Stats gives an overview of the inbox without reading its history.
func (in *Inbox) Stats(ctx context.Context) (*Stats, error) { return in.box.Stats(ctx) }

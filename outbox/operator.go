package outbox

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
	// A Filter selects messages of the outbox. Its Consumer is ignored.
	Filter = box.Filter
	// An Order says who moves a message by hand, and why.
	Order = box.Order
	// A CleanupResult counts the payloads emptied and the records forgotten.
	CleanupResult = box.CleanupResult
)

// Stats is an overview of an outbox.
type Stats struct {
	box.Stats
	// Overdue is how many messages have waited for longer than Options.Overdue;
	// 10,000 stands for that many or more.
	Overdue int
}

// Stats gives an overview of the outbox without reading its history.
func (o *Outbox) Stats(ctx context.Context) (*Stats, error) {
	stats, err := o.box.Stats(ctx)
	if err != nil {
		return nil, err
	}
	all := &Stats{Stats: *stats}
	for _, err := range o.overdue(ctx) {
		if err != nil {
			return nil, err
		}
		all.Overdue++
	}
	return all, nil
}

// Get gives the whole record of a message, or postroom.ErrNotFound.
func (o *Outbox) Get(ctx context.Context, source, id string) (*Record, error) {
	return o.box.Get(ctx, source, id)
}

// List gives one page of messages in ascending order of Seq. The next page
// begins after the last Seq.
func (o *Outbox) List(ctx context.Context, f Filter) ([]*Record, error) { return o.box.List(ctx, f) }

// All gives all messages that a filter selects, fetching page by page. It ends
// after an error.
func (o *Outbox) All(ctx context.Context, f Filter) iter.Seq2[*Record, error] {
	return o.box.All(ctx, f)
}

// Requeue gives a dead message a fresh start, at its old place in its group.
func (o *Outbox) Requeue(ctx context.Context, source, id string, by Order) error {
	_, err := o.box.Move(ctx, by.Move(o.box.Key(source, id), box.Requeue))
	return err
}

// RequeueAll requeues the dead messages that a filter selects, and gives how
// many. The filter's state, limit and payload setting are ignored.
func (o *Outbox) RequeueAll(ctx context.Context, f Filter, by Order) (int, error) {
	f.State, f.WithPayload = postroom.StateDead, false
	return o.box.MoveAll(ctx, f, by.Move(postroom.Key{}, box.Requeue))
}

// Discard ends a message that is not to be sent: it is Done, marked discarded.
func (o *Outbox) Discard(ctx context.Context, source, id string, by Order) error {
	_, err := o.box.Move(ctx, by.Move(o.box.Key(source, id), box.Discard))
	return err
}

// Pause keeps all relays, in all processes, from sending the messages of a topic.
// They wait, and with them what follows them in their groups; a relay heeds it
// from its next poll on. Adding goes on.
func (o *Outbox) Pause(ctx context.Context, topic string, by Order) error {
	return o.box.Pause(ctx, topic, by.Actor, by.Reason)
}

// Resume lets relays send the messages of a topic again.
func (o *Outbox) Resume(ctx context.Context, topic string, by Order) error {
	return o.box.Resume(ctx, topic, by.Actor)
}

// Paused gives the topics that are paused.
func (o *Outbox) Paused(ctx context.Context) ([]string, error) { return o.box.Paused(ctx) }

// Cleanup removes what was sent longer ago than the retention, in batches, until
// nothing is left. It can be cancelled and run again.
func (o *Outbox) Cleanup(ctx context.Context) (CleanupResult, error) {
	return o.box.Cleanup(ctx, 0, max(o.opts.Retention, 0))
}

// RunCleanup cleans up now and then every CleanupEvery, until ctx is done. A
// pass that fails is logged, and the next one runs. The error is nil unless the
// store can't clean up.
func (o *Outbox) RunCleanup(ctx context.Context) error {
	return o.box.CleanupEvery(ctx, o.opts.CleanupEvery, 0, max(o.opts.Retention, 0))
}

package outbox

import (
	"cmp"
	"context"
	"fmt"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// Add keeps messages inside your transaction, which it neither commits nor rolls
// back: they are sent if and only if you commit. If it fails, roll back: a part of
// them may be written. Messages of one group are sent in the order in which they
// are given.
//
// A message without an ID gets a new one, one without a source that of the
// options. The same ID twice is one message; with another content it is an error.
// Inside a handler of an inbox the causation is the handler's message, and
// correlation and trace are taken over from it, where they are not set.
func (o *Outbox) Add(ctx context.Context, tx postroom.Tx, msgs ...postroom.Message) error {
	complete := o.complete(ctx, msgs)
	results, err := o.box.ReceiveTx(ctx, tx, complete)
	if err == nil {
		err = conflict(complete, results)
	}
	if err != nil {
		return fmt.Errorf("add to outbox: %w", err)
	}
	box.OnCommit(ctx, o.box.Wake)
	return nil
}

// Publish keeps messages without a transaction of yours, for facts that no other
// write belongs to. nil says that all of them are kept and will be sent; after an
// error other than postroom.ErrUnknown none is. Calls with one message share
// their commits with those that are made at the same time.
func (o *Outbox) Publish(ctx context.Context, msgs ...postroom.Message) error {
	complete := o.complete(ctx, msgs)
	var err error
	if len(complete) == 1 && complete[0].Malformed == "" {
		var results []postroom.Result
		if results, err = o.box.Receive(ctx, complete); err == nil {
			err = conflict(complete, results)
		}
	} else {
		err = o.publishAll(ctx, complete)
	}
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	return nil
}

// publishAll keeps all messages, or none: a commit that others share could not be
// rolled back for the one that is refused.
func (o *Outbox) publishAll(ctx context.Context, msgs []postroom.Message) error {
	tx, err := o.box.Store().Begin(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // after the commit it does nothing
	results, err := o.box.ReceiveTx(ctx, tx, msgs)
	if err == nil {
		err = conflict(msgs, results)
	}
	if err == nil {
		err = tx.Commit(ctx)
	}
	if err == nil {
		o.box.Wake()
	}
	return err
}

// complete gives the messages as they will be kept.
func (o *Outbox) complete(ctx context.Context, msgs []postroom.Message) []postroom.Message {
	complete := make([]postroom.Message, len(msgs))
	cause, caused := box.MessageFrom(ctx)
	for i, m := range msgs {
		m.ID = cmp.Or(m.ID, postroom.NewID())
		m.Source = cmp.Or(m.Source, o.opts.Source)
		if caused {
			m = box.Follow(m, cause)
		}
		complete[i] = m
	}
	return complete
}

// conflict tells of an ID that stands for another content already: to drop one of
// them in silence would be a loss.
func conflict(msgs []postroom.Message, results []postroom.Result) error {
	for i, r := range results {
		if r.Outcome == postroom.Conflict {
			return argument("id", "%q was added before with another content", msgs[i].ID)
		}
	}
	return nil
}

// A Topic adds values of one type, as JSON, under one topic:
//
//	var OrderPaid = outbox.Topic[Paid]{Name: "order.paid", Group: func(p Paid) string { return p.OrderID }}
//
//	err := OrderPaid.Add(ctx, out, sqlstore.Tx(tx), Paid{…})
type Topic[T any] struct {
	// Name is the topic.
	Name string
	// Group gives the group of a value. Default: none.
	Group func(T) string
	// ID gives the ID of a value. Default: a new one each time.
	ID func(T) string
}

// Add adds values to an outbox, inside your transaction.
func (t Topic[T]) Add(ctx context.Context, out *Outbox, tx postroom.Tx, values ...T) error {
	msgs := make([]postroom.Message, len(values))
	for i, v := range values {
		m, err := t.Message(v)
		if err != nil {
			return fmt.Errorf("add to outbox: %w", err)
		}
		msgs[i] = m
	}
	return out.Add(ctx, tx, msgs...)
}

// Message makes the message of a value, for what Add does not set.
func (t Topic[T]) Message(v T) (postroom.Message, error) {
	m, err := postroom.JSON(t.Name, v)
	if err != nil {
		return m, err
	}
	if t.Group != nil {
		m.Group = t.Group(v)
	}
	if t.ID != nil {
		m.ID = t.ID(v)
	}
	return m, nil
}

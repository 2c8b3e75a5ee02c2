package inbox

import (
	"context"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// Receive keeps a message to be handled later. Acknowledge it to its sender if
// and only if the error is nil: then it is durable, whatever the outcome.
func (in *Inbox) Receive(ctx context.Context, m postroom.Message) (postroom.Result, error) {
	results, err := in.box.Receive(ctx, []postroom.Message{m})
	return first(results, err)
}

// ReceiveAll receives many messages in one commit. A message that can't be used
// fails alone: its result says why, and the error joins all failures. Where the
// error is nil, all may be acknowledged; else those whose result has none.
func (in *Inbox) ReceiveAll(ctx context.Context, msgs []postroom.Message) ([]postroom.Result, error) {
	return in.box.Receive(ctx, msgs)
}

// ReceiveTx receives a message inside your transaction: it is there if and only
// if you commit. If it fails, roll back: a part may be written. Workers find the
// message at their next poll.
func (in *Inbox) ReceiveTx(ctx context.Context, tx postroom.Tx, m postroom.Message) (postroom.Result, error) {
	results, err := in.box.ReceiveTx(ctx, tx, []postroom.Message{m})
	return first(results, err)
}

// ReceiveAllTx receives many messages inside your transaction. One that can't be
// used fails the call before any SQL; duplicates are no error. If it fails after
// that, roll back: a part may be written.
func (in *Inbox) ReceiveAllTx(ctx context.Context, tx postroom.Tx, msgs []postroom.Message) ([]postroom.Result, error) {
	return in.box.ReceiveTx(ctx, tx, msgs)
}

func first(results []postroom.Result, err error) (postroom.Result, error) {
	if len(results) == 0 {
		return postroom.Result{Err: err}, err
	}
	return results[0], err
}

// AlreadyProcessed reports whether a message is done, and remembers a message
// that was not known as Seen. The hash, of which nil is allowed, is compared
// with later ones.
func (in *Inbox) AlreadyProcessed(ctx context.Context, source, id string, hash []byte) (bool, error) {
	r, err := in.box.Take(ctx, box.Put{
		Mode:    box.Check,
		Message: postroom.Message{Source: source, ID: id, Hash: hash},
	})
	return err == nil && r.Outcome == postroom.Duplicate, err
}

// MarkProcessing says that a Seen message is being worked on. Any other message
// is left as it is.
func (in *Inbox) MarkProcessing(ctx context.Context, source, id string) error {
	return in.move(ctx, box.Move{Key: in.box.Key(source, id), Action: box.MarkProcessing})
}

// MarkProcessed says that a message is done, unless it is leased.
func (in *Inbox) MarkProcessed(ctx context.Context, source, id string) error {
	return in.move(ctx, box.Move{Key: in.box.Key(source, id), Action: box.MarkProcessed})
}

// MarkDead says that a message failed for good, unless it is leased or done.
func (in *Inbox) MarkDead(ctx context.Context, source, id, reason string) error {
	return in.move(ctx, box.Move{Key: in.box.Key(source, id), Action: box.MarkDead, Reason: reason})
}

func (in *Inbox) move(ctx context.Context, m box.Move) error {
	_, err := in.box.Move(ctx, m)
	return err
}

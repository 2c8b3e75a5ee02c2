package inbox

import (
	"cmp"
	"context"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// FollowUp receives a message that a handler leads to: in the handler's
// transaction if it has one, so that it is there if and only if the handler
// succeeds, else on its own. It belongs to this inbox, which may be the
// handler's own.
//
// Of what is not set, the causation is the handler's message, the correlation
// and the trace are taken over from it, and the source is the consumer. The ID
// is made of the handler's message, the topic and the payload: a handler that
// runs again does not ask for the same thing twice.
func (in *Inbox) FollowUp(ctx context.Context, m postroom.Message) (postroom.Result, error) {
	m.Source = cmp.Or(m.Source, in.Consumer())
	if cause, found := MessageFrom(ctx); found {
		m.ID = cmp.Or(m.ID, postroom.NameID(cause.Consumer, cause.Source, cause.ID, m.Topic, string(m.Payload)))
		m = box.Follow(m, cause)
	}
	m.ID = cmp.Or(m.ID, postroom.NewID())
	if tx, found := TxFrom(ctx); found {
		return in.ReceiveTx(ctx, tx, m)
	}
	return in.Receive(ctx, m)
}

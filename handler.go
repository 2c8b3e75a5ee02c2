package postroom

import (
	"context"
	"errors"
)

// A Handler does the work that a message asks for. Its error is its verdict.
// The context ends when the lease is lost, the handler's time is up, or the
// worker stops. Handlers share goroutines: what one sets on its own, such as a
// locked thread or labels of a profile, it must undo.
type Handler interface {
	Handle(ctx context.Context, m *Message) error
}

// HandlerFunc makes a Handler of a function.
type HandlerFunc func(ctx context.Context, m *Message) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, m *Message) error { return f(ctx, m) }

// A TxHandler does its work in a transaction of the store: what it writes there
// and the message's being done commit together or not at all.
type TxHandler interface {
	Handler
	HandleTx(ctx context.Context, tx Tx, m *Message) error
}

// TxHandlerFunc makes a TxHandler of a function.
type TxHandlerFunc func(ctx context.Context, tx Tx, m *Message) error

// HandleTx calls f.
func (f TxHandlerFunc) HandleTx(ctx context.Context, tx Tx, m *Message) error { return f(ctx, tx, m) }

// Handle fails: without a transaction f can't keep what it promises.
func (f TxHandlerFunc) Handle(context.Context, *Message) error { return errNeedsTx }

var errNeedsTx = errors.New("postroom: this handler needs a transaction; run it by a worker or by Once")

// A Tx is a database transaction, wrapped by the store package that it belongs
// to: sqlstore.Tx, pgxstore.Tx, or one that a store began by itself. A store
// refuses those of another kind with ErrForeignTx.
type Tx interface {
	// PostroomTx marks the type.
	PostroomTx()
}

package postroom

import "context"

// A Handler does the work that a message asks for. Its error is its verdict.
// The context ends when the lease is lost, the handler's time is up, or the
// worker stops.
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

// A Tx is a database transaction, wrapped by the store package that it belongs
// to: sqlstore.Tx, pgxstore.Tx, or one that a store began by itself. A store
// refuses those of another kind with ErrForeignTx.
type Tx interface {
	// PostroomTx marks the type.
	PostroomTx()
}

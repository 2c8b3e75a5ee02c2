package inbox

import (
	"context"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

type txKey struct{}

// MessageFrom gives the message that the surrounding handler works on, for code
// that is given only its context or its decoded payload.
func MessageFrom(ctx context.Context) (*postroom.Message, bool) {
	return box.MessageFrom(ctx)
}

func withTx(ctx context.Context, tx postroom.Tx) context.Context {
	return context.WithValue(ctx, txKey{}, tx)
}

// TxFrom gives the transaction in which the surrounding handler runs, if it runs
// in one: in Once, in Idempotent with Once, and in transactional handlers.
func TxFrom(ctx context.Context) (postroom.Tx, bool) {
	tx, ok := ctx.Value(txKey{}).(postroom.Tx)
	return tx, ok
}

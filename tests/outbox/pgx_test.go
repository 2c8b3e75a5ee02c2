package outbox_test

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/postroom/postroom"
	"github.com/postroom/postroom/pgxstore"
)

func wrapPgx(tx pgx.Tx) callerTx {
	return callerTx{
		own:      pgxstore.Tx(tx),
		exec:     func(q string) error { _, err := tx.Exec(context.Background(), q); return err },
		commit:   func() error { return tx.Commit(context.Background()) },
		rollback: func() error { return tx.Rollback(context.Background()) },
	}
}

func pgxHandler(fn func(context.Context, callerTx) error) func(context.Context, pgx.Tx, *postroom.Message) error {
	return func(ctx context.Context, tx pgx.Tx, _ *postroom.Message) error { return fn(ctx, wrapPgx(tx)) }
}

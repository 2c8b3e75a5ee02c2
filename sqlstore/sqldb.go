package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/postroom/postroom"
)

// Execer is what *sql.Tx, *sql.Conn, sqlx and bun transactions have in common.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Tx lets a store work inside the caller's transaction: a *sql.Tx, or anything
// with its two methods that is bound to a transaction.
func Tx(tx Execer) postroom.Tx { return CallerTx{sqlConn{tx}} }

// Handler makes a transactional handler of a function that takes the *sql.Tx in
// which the message will be done.
func Handler(fn func(ctx context.Context, tx *sql.Tx, m *postroom.Message) error) postroom.TxHandler {
	return sqlHandler(fn)
}

type sqlHandler func(ctx context.Context, tx *sql.Tx, m *postroom.Message) error

func (h sqlHandler) Handle(context.Context, *postroom.Message) error {
	return errors.New("sqlstore.Handler needs a transaction: register it with a worker on a sqlstore")
}

func (h sqlHandler) HandleTx(ctx context.Context, tx postroom.Tx, m *postroom.Message) error {
	stx, err := SQLTx(tx)
	if err != nil {
		return err
	}
	return h(ctx, stx, m)
}

// SQLTx gives the *sql.Tx of a transaction that a store on database/sql began.
func SQLTx(tx postroom.Tx) (*sql.Tx, error) {
	if own, ok := tx.(*Transaction); ok {
		if stx, ok := own.conn.(*sqlTx); ok {
			return stx.tx, nil
		}
	}
	return nil, fmt.Errorf("take *sql.Tx out of %T: %w", tx, postroom.ErrForeignTx)
}

type sqlConn struct{ db Execer }

func (c sqlConn) Exec(ctx context.Context, query string, args ...any) error {
	_, err := c.db.ExecContext(ctx, query, args...)
	return err
}

func (c sqlConn) Query(ctx context.Context, query string, args ...any) (Rows, error) {
	return c.db.QueryContext(ctx, query, args...) //nolint:rowserrcheck // the caller closes and checks
}

type sqlDB struct {
	sqlConn
	db        *sql.DB
	isolation sql.IsolationLevel
	prepared  *prepared
}

func newSQLDB(db *sql.DB, isolation sql.IsolationLevel) sqlDB {
	p := &prepared{db: db}
	return sqlDB{sqlConn{p}, db, isolation, p}
}

func (d sqlDB) Begin(ctx context.Context) (TxConn, error) {
	tx, err := d.db.BeginTx(ctx, &sql.TxOptions{Isolation: d.isolation})
	if err != nil {
		return nil, err
	}
	return &sqlTx{sqlConn{preparedTx{d.prepared, tx}}, tx}, nil
}

// Pool: see Pooled.
func (d sqlDB) Pool() any { return d.db }

func (d sqlDB) MaxConns() int { return d.db.Stats().MaxOpenConnections }

type sqlTx struct {
	sqlConn
	tx *sql.Tx
}

func (t *sqlTx) Commit(context.Context) error { return t.tx.Commit() }

func (t *sqlTx) Rollback(context.Context) error {
	if err := t.tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}

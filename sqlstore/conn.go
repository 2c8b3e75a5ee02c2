package sqlstore

import (
	"context"

	"github.com/postroom/postroom"
)

// A Conn runs statements, inside or outside of a transaction.
type Conn interface {
	Exec(ctx context.Context, query string, args ...any) error
	Query(ctx context.Context, query string, args ...any) (Rows, error)
}

// Rows are the rows that a query gave.
type Rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close() error
}

// A DB is a pool of connections: the seam between the store and a driver.
type DB interface {
	Conn
	// Begin starts a transaction at READ COMMITTED, where the database has it.
	Begin(ctx context.Context) (TxConn, error)
	// MaxConns is how many connections can be open at once; 0: no limit.
	MaxConns() int
}

// A Pooled DB says which pool it is on. Stores on one pool share their
// transactions; a DB that is none is a pool of its own.
type Pooled interface{ Pool() any }

// samePool tells whether a transaction of one DB is one of the other.
func samePool(a, b DB) bool {
	p, one := a.(Pooled)
	q, other := b.(Pooled)
	if one && other {
		return p.Pool() == q.Pool()
	}
	return a == b
}

// A Discreet DB tells whether values go to the server beside the statements: a
// server logs a statement that fails, and no payload may be in it.
type Discreet interface{ Discreet() bool }

// A Pipeliner is a DB that can run several statements with one round trip and
// one commit.
type Pipeliner interface {
	// Pipelines reports whether it can here and now.
	Pipelines() bool
	Pipeline(ctx context.Context, steps []Step) error
}

// A Step is one statement of a pipeline.
type Step struct {
	Query string
	Args  []any
	Scan  func(Rows) error
}

// A TxConn is a transaction on a DB.
type TxConn interface {
	Conn
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
}

// CallerTx is a transaction of the caller's: the store runs statements in it,
// and never ends it.
type CallerTx struct{ Conn Conn }

// PostroomTx marks the type.
func (CallerTx) PostroomTx() {}

var _ postroom.Tx = CallerTx{}

// Package pgxstore keeps a box in PostgreSQL through pgx, without database/sql
// in between: arrays travel in the binary protocol, and handlers get a pgx.Tx.
package pgxstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/postgres"
)

// Options of a store. The zero value consists entirely of defaults.
type Options = sqlstore.Options

// Store is a sqlstore.Store on a pgx pool. Besides, it wakes the workers of other
// processes.
type Store struct {
	*sqlstore.Store
	db      *poolDB
	channel string
}

var (
	_ box.Waker    = (*Store)(nil)
	_ box.Outboxer = (*Store)(nil)
)

// Open makes a store on the caller's pool, which stays the caller's to close. It
// does not touch the database; Migrate creates the tables. Behind a pooler in
// transaction mode the store prepares no statements, whatever the pool is set to.
func Open(pool *pgxpool.Pool, opts Options) (*Store, error) {
	dialect := *postgres.Dialect
	dialect.Batch = arrays
	db := newPoolDB(pool)
	store, err := sqlstore.New(db, &dialect, opts)
	if err != nil {
		return nil, err
	}
	return &Store{store, db, channel(opts)}, nil
}

// Outbox gives the table set for what leaves. A transaction of either store is
// one of both.
func (s *Store) Outbox() (box.Store, error) {
	out, err := s.Store.Outbox()
	if err != nil {
		return nil, err
	}
	return &Store{out.(*sqlstore.Store), s.db, s.channel + "_out"}, nil
}

// channel is the name under which the processes of one table set notify each
// other. A hash, because names of channels are short.
func channel(opts Options) string {
	sum := sha256.Sum256([]byte(opts.Schema + "." + opts.Prefix))
	return "postroom_" + hex.EncodeToString(sum[:8])
}

// Tx lets a store work inside the caller's transaction.
func Tx(tx pgx.Tx) postroom.Tx {
	return sqlstore.CallerTx{Conn: runner{tx, func(ctx context.Context) (way, error) { return wayOf(ctx, tx.Conn()) }}}
}

// Handler makes a transactional handler of a function that takes the pgx.Tx in
// which the message will be done.
func Handler(fn func(ctx context.Context, tx pgx.Tx, m *postroom.Message) error) postroom.TxHandler {
	return handler(fn)
}

type handler func(ctx context.Context, tx pgx.Tx, m *postroom.Message) error

func (h handler) Handle(context.Context, *postroom.Message) error {
	return errors.New("pgxstore.Handler needs a transaction: register it with a worker on a pgxstore")
}

func (h handler) HandleTx(ctx context.Context, tx postroom.Tx, m *postroom.Message) error {
	ptx, err := PgxTx(tx)
	if err != nil {
		return err
	}
	return h(ctx, ptx, m)
}

// PgxTx gives the pgx.Tx of a transaction that a store on pgx began.
func PgxTx(tx postroom.Tx) (pgx.Tx, error) {
	if own, ok := tx.(*sqlstore.Transaction); ok {
		if ptx, ok := own.Conn().(*poolTx); ok {
			return ptx.tx, nil
		}
	}
	return nil, fmt.Errorf("take pgx.Tx out of %T: %w", tx, postroom.ErrForeignTx)
}

// querier is what a pool and a transaction have in common.
type querier interface {
	Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
}

type runner struct {
	q   querier
	way func(context.Context) (way, error)
}

func (r runner) Exec(ctx context.Context, query string, args ...any) error {
	args, err := r.heed(ctx, args)
	if err == nil {
		_, err = r.q.Exec(ctx, query, args...)
	}
	return err
}

// heed puts the mode before the arguments, where the way needs one.
func (r runner) heed(ctx context.Context, args []any) ([]any, error) {
	w, err := r.way(ctx)
	if err != nil {
		return nil, err
	}
	if w.undescribed {
		args = plain(args)
	}
	if w.mode != 0 {
		args = append([]any{w.mode}, args...)
	}
	return args, nil
}

func (r runner) Query(ctx context.Context, query string, args ...any) (sqlstore.Rows, error) {
	args, err := r.heed(ctx, args)
	if err != nil {
		return nil, err
	}
	rows, err := r.q.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return newRows(rows), nil
}

type poolDB struct {
	runner
	pool  *pgxpool.Pool
	route *poolWay
}

func newPoolDB(pool *pgxpool.Pool) *poolDB {
	route := &poolWay{pool: pool}
	return &poolDB{runner{pool, route.find}, pool, route}
}

// Discreet: see sqlstore.Discreet.
func (d *poolDB) Discreet() bool { return d.route.discreet() }

// Pool: see sqlstore.Pooled.
func (d *poolDB) Pool() any { return d.pool }

func (d *poolDB) Begin(ctx context.Context) (sqlstore.TxConn, error) {
	// Before it takes a connection: the look takes one of its own.
	if _, err := d.route.find(ctx); err != nil {
		return nil, err
	}
	tx, err := d.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return nil, err
	}
	return &poolTx{runner{tx, d.route.find}, tx}, nil
}

// Pipelines: see sqlstore.Pipeliner.
func (d *poolDB) Pipelines() bool { return d.route.pipelines() }

// Pipeline runs the steps in one implicit transaction, which commits at its end.
func (d *poolDB) Pipeline(ctx context.Context, steps []sqlstore.Step) error {
	var batch pgx.Batch
	for _, step := range steps {
		args, err := d.heed(ctx, step.Args)
		if err != nil {
			return err
		}
		batch.Queue(step.Query, args...)
	}
	results := d.pool.SendBatch(ctx, &batch)
	for _, step := range steps {
		if err := readStep(results, step); err != nil {
			_ = results.Close()
			return err
		}
	}
	// The commit's answer comes with the end of the batch.
	return results.Close()
}

func readStep(results pgx.BatchResults, step sqlstore.Step) error {
	rows, err := results.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	scanned := newRows(rows)
	for rows.Next() {
		if err := step.Scan(scanned); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (d *poolDB) MaxConns() int { return int(d.pool.Config().MaxConns) }

type poolTx struct {
	runner
	tx pgx.Tx
}

func (t *poolTx) Commit(ctx context.Context) error { return t.tx.Commit(ctx) }

func (t *poolTx) Rollback(ctx context.Context) error {
	if err := t.tx.Rollback(ctx); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
		return err
	}
	return nil
}

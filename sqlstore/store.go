// Package sqlstore keeps a box in a SQL database that the program already has.
// One implementation serves all of them: it loads and locks rows, lets the rules
// of package box decide, and writes rows. What differs between databases is a
// Dialect of whole, named statements.
package sqlstore

import (
	"database/sql"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// Options of a store. The zero value consists entirely of defaults.
type Options struct {
	// Schema is the database schema of the tables. Default: the connection's own.
	Schema string
	// Prefix begins the name of each table, before an underscore.
	// Default "postroom".
	Prefix string
	// Name is what logs and metrics call the store. Default: the dialect's name,
	// with schema and prefix where they are set.
	Name string
	// Wait bounds how long an operation waits for another one's lock on the same
	// message before it gives postroom.ErrInProgress. Default 5 s.
	Wait time.Duration
}

// Store implements box.Store and all of its abilities on one table set.
type Store struct {
	db         DB
	dialect    *Dialect
	names      names
	statements map[string]string
	name       string
	schema     string
	prefix     string
	wait       time.Duration
	// outbox is the second table set; nil in a store that is one.
	outbox *Store
	// writer admits one writing transaction at a time where the database does.
	writer chan struct{}
	closed atomic.Bool
	floors floors
	hope   hope
	// accepted: the server was found to be one that can be used.
	accepted atomic.Bool
	// stepwise: the server needs several steps where others need one statement.
	stepwise atomic.Bool
	// prepared: the statements that are kept prepared are.
	prepared atomic.Bool
}

var (
	_ box.Store    = (*Store)(nil)
	_ box.Sweeper  = (*Store)(nil)
	_ box.Lister   = (*Store)(nil)
	_ box.Counter  = (*Store)(nil)
	_ box.Pauser   = (*Store)(nil)
	_ box.Migrator = (*Store)(nil)
	_ box.Pool     = (*Store)(nil)
	_ box.Serial   = (*Store)(nil)
	_ box.Namer    = (*Store)(nil)
	_ box.Outboxer = (*Store)(nil)
)

// Open makes a store on the caller's pool, which stays the caller's to close.
// It does not touch the database; Migrate creates the tables, and Check tells
// whether they are there.
func Open(db *sql.DB, d *Dialect, opts Options) (*Store, error) {
	return New(newSQLDB(db, d.Isolation), d, opts)
}

// New makes a store on any pool that satisfies DB.
func New(db DB, d *Dialect, opts Options) (*Store, error) {
	if opts.Prefix == "" {
		opts.Prefix = "postroom"
	}
	if opts.Wait <= 0 {
		opts.Wait = 5 * time.Second
	}
	if err := checkNames(d, opts.Schema, opts.Prefix); err != nil {
		return nil, fmt.Errorf("open %s store: %w", d.Name, err)
	}
	if opts.Name == "" {
		opts.Name = defaultName(d, opts)
	}
	s, err := newSet(db, d, opts)
	if err != nil {
		return nil, err
	}
	if d.SingleWriter {
		s.writer = make(chan struct{}, 1)
	}
	opts.Prefix += "_outbox"
	opts.Name += "/outbox"
	if s.outbox, err = newSet(db, d, opts); err != nil {
		return nil, err
	}
	s.outbox.writer = s.writer
	return s, nil
}

// newSet makes a store on one table set.
func newSet(db DB, d *Dialect, opts Options) (*Store, error) {
	n := newNames(d, opts.Schema, opts.Prefix, opts.Wait)
	statements, err := parseStatements(d.Statements, n)
	if err != nil {
		return nil, fmt.Errorf("open %s store: %w", d.Name, err)
	}
	s := &Store{
		db: db, dialect: d, names: n, statements: statements,
		name: opts.Name, schema: opts.Schema, prefix: opts.Prefix, wait: opts.Wait,
		floors: floors{span: int64(max(d.Span, 1))},
	}
	return s, nil
}

func defaultName(d *Dialect, opts Options) string {
	name := d.Name
	if opts.Schema != "" {
		name += "/" + opts.Schema
	}
	if opts.Prefix != "postroom" {
		name += "/" + opts.Prefix
	}
	return name
}

// Name is what logs and metrics call the store.
func (s *Store) Name() string { return s.name }

// MaxConns is how many connections the pool may open; 0: no limit.
func (s *Store) MaxConns() int { return s.db.MaxConns() }

// OneWriter tells whether a transaction of this store keeps all others out.
func (s *Store) OneWriter() bool { return s.dialect.SingleWriter }

// Close lets all later calls fail with postroom.ErrClosed. The pool stays open.
func (s *Store) Close() error {
	for _, set := range s.sets() {
		set.closed.Store(true)
	}
	if p, ok := s.db.(Preparer); ok {
		return p.Unprepare()
	}
	return nil
}

// session gives the session of a caller's or an own transaction, or nil when tx
// is nil.
func (s *Store) session(tx postroom.Tx) (*session, error) {
	switch tx := tx.(type) {
	case nil:
		return nil, nil
	case CallerTx:
		return &session{store: s, conn: tx.Conn, caller: true, snapshot: s.dialect.Snapshots}, nil
	case *Transaction:
		if !samePool(tx.store.db, s.db) {
			return nil, fmt.Errorf("%s: transaction of %s: %w", s.name, tx.store.name, postroom.ErrForeignTx)
		}
		return &session{store: s, conn: tx.conn, caller: true}, nil
	default:
		return nil, fmt.Errorf("%s: transaction is %T: %w", s.name, tx, postroom.ErrForeignTx)
	}
}

// read runs fn outside of a transaction.
func (s *Store) read(op string, fn func(q *session) error) error {
	if s.closed.Load() {
		return postroom.ErrClosed
	}
	if err := fn(&session{store: s, conn: s.db}); err != nil {
		return s.explain(op, err)
	}
	return nil
}

// explain wraps an error with the operation and, where the tables are missing or
// the driver is set wrongly, with what to do.
func (s *Store) explain(op string, err error) error {
	switch s.dialect.Classify(err) {
	case Refused:
		return fmt.Errorf("%s in %s: %w: %w", op, s.name, box.ErrRefused, err)
	case NoTable:
		return fmt.Errorf("%s in %s: %w (call Migrate, or run 'postroom migrate'): %w", op, s.name, postroom.ErrNoSchema, err)
	case Unprepared:
		return fmt.Errorf("%s in %s: a pooler between this program and the database loses prepared statements "+
			"(PgBouncer in transaction mode?); let the driver do without: add default_query_exec_mode=cache_describe to the DSN of pgx, "+
			"binary_parameters=yes to that of lib/pq: %w", op, s.name, err)
	}
	return fmt.Errorf("%s in %s: %w", op, s.name, err)
}

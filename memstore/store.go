// Package memstore keeps messages in memory. It does all that the SQL stores do,
// with a clock that tests can move, and is the model that they are compared
// with. Nothing survives the process.
//
// It has one writer at a time: a transaction holds the store from its first
// write to its end, and other writers wait. Readers see what is committed.
package memstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// Options of a store. Zero values are the defaults.
type Options struct {
	// Now is the store's clock. Default: time.Now.
	Now func() time.Time
	// Wait is how long a writer waits for the transaction of another before it
	// gives up with postroom.ErrInProgress. Default 5 s.
	Wait time.Duration
	// Name is what logs and metrics call the store. Default "memory".
	Name string
}

// A Store keeps messages in memory. It is safe for concurrent use.
type Store struct {
	opts Options
	*database
	// outbox is the second table set; nil in a store that is one.
	outbox *Store

	// number gives Seq, Position and ReadyPosition. Like a sequence of a
	// database it does not go back on rollback.
	number   int64
	entry    int64
	keys     table[postroom.Key, int64]
	messages table[int64, message]
	work     table[int64, box.Work]
	done     table[int64, box.Done]
	lanes    table[lane, int64]
	audit    table[int64, box.AuditEntry]
	totals   table[total, int64]
	paused   table[topic, string]
}

// A database is what a store and its outbox have in common.
type database struct {
	// writer holds a token while someone writes.
	writer chan struct{}

	mu     sync.RWMutex
	closed bool
	sets   []*Store
}

// A lane is a group that has a head, which is 0 while it is vacant.
type lane struct{ consumer, group string }

// A topic of a consumer.
type topic struct{ consumer, topic string }

// A total is what is counted.
type total struct{ consumer, topic, name string }

// What a store of ours can do.
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

// New makes an empty store.
func New(opts Options) *Store {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Wait == 0 {
		opts.Wait = 5 * time.Second
	}
	if opts.Name == "" {
		opts.Name = "memory"
	}
	s := newSet(opts, &database{writer: make(chan struct{}, 1)})
	opts.Name += "/outbox"
	s.outbox = newSet(opts, s.database)
	return s
}

func newSet(opts Options, db *database) *Store {
	s := &Store{
		opts:     opts,
		database: db,
		keys:     newTable[postroom.Key, int64](),
		messages: newTable[int64, message](),
		work:     newTable[int64, box.Work](),
		done:     newTable[int64, box.Done](),
		lanes:    newTable[lane, int64](),
		audit:    newTable[int64, box.AuditEntry](),
		totals:   newTable[total, int64](),
		paused:   newTable[topic, string](),
	}
	db.sets = append(db.sets, s)
	return s
}

// Outbox gives the table set for what leaves. A transaction of either store is
// one of both.
func (s *Store) Outbox() (box.Store, error) {
	if s.outbox == nil {
		return nil, fmt.Errorf("%s is an outbox itself", s.opts.Name)
	}
	return s.outbox, nil
}

// Name is the name given by the options.
func (s *Store) Name() string { return s.opts.Name }

// MaxConns is 0: memory has no connections to run out of.
func (s *Store) MaxConns() int { return 0 }

// OneWriter is true: a transaction that writes is the only writer.
func (s *Store) OneWriter() bool { return true }

// Migrate does nothing: there is no schema.
func (s *Store) Migrate(ctx context.Context) error {
	return s.read(ctx, func() error { return nil })
}

// Close makes all further calls fail with postroom.ErrClosed.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

func (db *database) tables() []versioned {
	var all []versioned
	for _, s := range db.sets {
		all = append(all, &s.keys, &s.messages, &s.work, &s.done, &s.lanes, &s.audit, &s.totals, &s.paused)
	}
	return all
}

// now is the clock as databases keep it: in microseconds of UTC.
func (s *Store) now() time.Time { return instant(s.opts.Now()) }

func instant(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}

// next gives the next number of the store's sequence.
func (s *Store) next() int64 {
	s.number++
	return s.number
}

// read runs f with the tables locked for reading.
func (s *Store) read(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return postroom.ErrClosed
	}
	return f()
}

// write runs f as the only writer: inside tx, or else as a change that is
// committed at once. f can't fail, so that nothing is ever half written.
func (s *Store) write(ctx context.Context, tx postroom.Tx, f func(now time.Time)) error {
	if tx != nil {
		t, ok := tx.(*Tx)
		if !ok || t.store.database != s.database {
			return postroom.ErrForeignTx
		}
		return t.write(ctx, f)
	}
	if err := s.acquire(ctx); err != nil {
		return err
	}
	defer s.release()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return postroom.ErrClosed
	}
	f(s.now())
	return nil
}

func (s *Store) acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.read(ctx, func() error { return nil }); err != nil {
		return err
	}
	select {
	case s.writer <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(s.opts.Wait)
	defer timer.Stop()
	select {
	case s.writer <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return postroom.ErrInProgress
	}
}

func (s *Store) release() { <-s.writer }

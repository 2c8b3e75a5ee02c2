package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

const (
	// commitTime bounds a commit, which goes on when the caller's context ends:
	// a commit that is cut off has an unknown outcome.
	commitTime = 10 * time.Second
	// repeats is how often a transaction that the database gave up is repeated.
	repeats = 10
)

// A Transaction was begun by the store. User code and settling run in it.
type Transaction struct {
	store *Store
	conn  TxConn
	// vacated are the consumers whose lanes can be filled after the commit.
	vacated map[string]bool
	ended   bool
}

// PostroomTx marks the type.
func (*Transaction) PostroomTx() {}

// Conn gives the connection of the transaction to adapters.
func (t *Transaction) Conn() TxConn { return t.conn }

// Begin starts a transaction in which user code and Settle run together.
func (s *Store) Begin(ctx context.Context) (box.Transaction, error) {
	t, err := s.begin(ctx)
	if err != nil {
		return nil, s.explain("begin", err)
	}
	return t, nil
}

func (s *Store) begin(ctx context.Context) (*Transaction, error) {
	if s.closed.Load() {
		return nil, postroom.ErrClosed
	}
	if err := s.lockWriter(ctx); err != nil {
		return nil, err
	}
	var t *Transaction
	err := s.patiently(ctx, func() (err error) {
		t, err = s.open(ctx)
		return err
	})
	if err != nil {
		s.unlockWriter()
		return nil, err
	}
	return t, nil
}

// patiently repeats fn while the database is busy, up to the bound.
func (s *Store) patiently(ctx context.Context, fn func() error) error {
	deadline := time.Now().Add(s.wait)
	for try := 1; ; try++ {
		err := fn()
		if err == nil || s.dialect.Classify(err) != Busy {
			return err
		}
		if !time.Now().Before(deadline) {
			return fmt.Errorf("%w: %w", postroom.ErrInProgress, err)
		}
		if err := pause(ctx, try); err != nil {
			return err
		}
	}
}

// open begins one transaction and readies it: a single writer takes its lock
// first, so that it never has to give up in the middle.
func (s *Store) open(ctx context.Context) (*Transaction, error) {
	s.readyStatements(ctx)
	conn, err := s.db.Begin(ctx)
	if err != nil {
		return nil, err
	}
	t := &Transaction{store: s, conn: conn}
	q := &session{store: s, conn: conn}
	if err := q.accept(ctx); err != nil {
		_ = conn.Rollback(ctx)
		return nil, err
	}
	if q.has("begin") {
		// Without tables there is nothing to lock; what follows will say so.
		if err := q.exec(ctx, "begin"); err != nil && s.dialect.Classify(err) != NoTable {
			_ = conn.Rollback(ctx)
			return nil, err
		}
	}
	return t, nil
}

// readyStatements prepares what the dialect wants prepared, once there are
// tables. That it failed shows when the statements run.
func (s *Store) readyStatements(ctx context.Context) {
	p, ok := s.db.(Preparer)
	if !ok || s.prepared.Load() {
		return
	}
	texts := make([]string, len(s.dialect.Prepares))
	for i, name := range s.dialect.Prepares {
		texts[i] = s.statements[name]
	}
	if p.Prepare(ctx, texts) == nil {
		s.prepared.Store(true)
	}
}

func (s *Store) lockWriter(ctx context.Context) error {
	if s.writer == nil {
		return nil
	}
	timeout := time.NewTimer(s.wait)
	defer timeout.Stop()
	select {
	case s.writer <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timeout.C:
		return fmt.Errorf("%w: another transaction of this program writes", postroom.ErrInProgress)
	}
}

func (s *Store) unlockWriter() {
	if s.writer != nil {
		<-s.writer
	}
}

// Commit gives postroom.ErrUnknown when the answer was lost, and
// postroom.ErrRetry when the database gave the transaction up.
func (t *Transaction) Commit(ctx context.Context) error {
	err := t.commit(ctx)
	switch {
	case err == nil:
		t.fill(ctx)
		return nil
	case t.store.dialect.Classify(err) == Repeat:
		return t.store.explain("commit", fmt.Errorf("%w: %w", postroom.ErrRetry, err))
	default:
		return t.store.explain("commit", err)
	}
}

// fill readies the next messages of groups whose head was settled. A failure
// costs only time: the next claim does the same.
func (t *Transaction) fill(ctx context.Context) {
	for consumer := range t.vacated {
		_ = t.store.fillLanes(ctx, consumer)
	}
}

func (t *Transaction) commit(ctx context.Context) error {
	if t.ended {
		return errors.New("transaction has ended already")
	}
	t.ended = true
	defer t.store.unlockWriter()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer cancel()
	err := t.conn.Commit(ctx)
	if err == nil {
		return nil
	}
	class := t.store.dialect.Classify(err)
	if class == Lost || ctx.Err() != nil {
		return fmt.Errorf("%w: %w", postroom.ErrUnknown, err)
	}
	_ = t.conn.Rollback(ctx)
	return err
}

// Rollback after Commit does nothing.
func (t *Transaction) Rollback(ctx context.Context) error {
	if t.ended {
		return nil
	}
	t.ended = true
	defer t.store.unlockWriter()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer cancel()
	return t.conn.Rollback(ctx)
}

// write runs fn in a transaction of its own, and repeats it when the database
// gave it up. fn must be able to run again from the start.
func (s *Store) write(ctx context.Context, op string, fn func(q *session) error) error {
	return s.repeat(ctx, op, func() error { return s.writeOnce(ctx, fn) })
}

// writeAlone is write for a fn of one statement, which most databases make a
// transaction of their own.
func (s *Store) writeAlone(ctx context.Context, op string, fn func(q *session) error) error {
	if _, steps := s.statements["claimed"]; steps || s.dialect.SingleWriter {
		return s.write(ctx, op, fn)
	}
	return s.repeat(ctx, op, func() error {
		if s.closed.Load() {
			return postroom.ErrClosed
		}
		return fn(&session{store: s, conn: s.db})
	})
}

// repeat does once, and again when the database gave it up, or knows no statement
// that does in one step what can be done in several.
func (s *Store) repeat(ctx context.Context, op string, once func() error) error {
	for try := 1; ; try++ {
		stepwise := s.stepwise.Load()
		err := once()
		if err == nil {
			return nil
		}
		class := s.dialect.Classify(err)
		if class == Unsupported && !stepwise {
			s.stepwise.Store(true)
			continue
		}
		if class != Repeat || errors.Is(err, postroom.ErrUnknown) || try == repeats {
			return s.explain(op, err)
		}
		if err := pause(ctx, try); err != nil {
			return s.explain(op, err)
		}
	}
}

func (s *Store) writeOnce(ctx context.Context, fn func(q *session) error) error {
	t, err := s.begin(ctx)
	if err != nil {
		return err
	}
	q := &session{store: s, conn: t.conn}
	if q.has("bound_waits") {
		err = q.exec(ctx, "bound_waits")
	}
	if err == nil {
		err = fn(q)
	}
	if err != nil {
		_ = t.Rollback(ctx)
		return err
	}
	return t.commit(ctx)
}

// one runs fn, which is a single statement that commits by itself, and repeats
// it when the database gave it up. When the answer was lost, nobody knows.
func (s *Store) one(ctx context.Context, op string, fn func(q *session) error) error {
	if s.closed.Load() {
		return postroom.ErrClosed
	}
	for try := 1; ; try++ {
		err := fn(&session{store: s, conn: s.db})
		if err == nil {
			return nil
		}
		class := s.dialect.Classify(err)
		if class == Lost || ctx.Err() != nil {
			return s.explain(op, fmt.Errorf("%w: %w", postroom.ErrUnknown, err))
		}
		if class != Repeat || try == repeats {
			return s.explain(op, err)
		}
		if err := pause(ctx, try); err != nil {
			return s.explain(op, err)
		}
	}
}

// inCaller runs fn in the caller's transaction. A transaction that the database
// gave up can only be repeated by the caller.
func (s *Store) inCaller(op string, q *session, fn func() error) error {
	if s.closed.Load() {
		return postroom.ErrClosed
	}
	err := fn()
	switch {
	case err == nil:
		return nil
	case s.dialect.Classify(err) == Repeat, s.dialect.Classify(err) == Busy:
		return s.explain(op, fmt.Errorf("%w: %w", postroom.ErrRetry, err))
	default:
		return s.explain(op, err)
	}
}

// pause waits a little longer with each try, spread so that rivals separate.
func pause(ctx context.Context, try int) error {
	longest := time.Duration(min(try*try, 50)) * time.Millisecond
	timer := time.NewTimer(longest/2 + rand.N(longest/2+1)) //nolint:gosec // spreading needs no secrecy
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

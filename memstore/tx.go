package memstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// A Tx is a transaction of a Store. From its first write to its end it is the
// store's only writer.
type Tx struct {
	store *Store

	mu      sync.Mutex
	writing bool
	ended   bool
	// vacated are the lanes to fill on commit, by table set.
	vacated map[*Store]vacancy
}

var _ box.Transaction = (*Tx)(nil)

var errEnded = errors.New("memstore: the transaction has ended")

// Begin starts a transaction. The result is a *Tx.
func (s *Store) Begin(ctx context.Context) (box.Transaction, error) {
	if err := s.read(ctx, func() error { return nil }); err != nil {
		return nil, err
	}
	return &Tx{store: s, vacated: map[*Store]vacancy{}}, nil
}

// PostroomTx marks the type.
func (*Tx) PostroomTx() {}

// Commit makes the changes of the transaction visible.
func (t *Tx) Commit(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return errEnded
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !t.writing {
		t.ended = true
		return t.store.read(ctx, func() error { return nil })
	}
	t.store.mu.Lock()
	closed := t.store.closed
	t.store.mu.Unlock()
	t.end(!closed)
	if closed {
		return postroom.ErrClosed
	}
	return nil
}

// Rollback undoes the changes of the transaction. After Commit it does nothing.
func (t *Tx) Rollback(context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.end(false)
	}
	return nil
}

func (t *Tx) end(commit bool) {
	t.ended = true
	if !t.writing {
		return
	}
	t.store.mu.Lock()
	for _, table := range t.store.tables() {
		if commit {
			table.commit()
		} else {
			table.rollback()
		}
	}
	if commit {
		for s, vacated := range t.vacated {
			s.fillAll(vacated)
		}
	}
	t.store.mu.Unlock()
	t.store.release()
}

func (t *Tx) write(ctx context.Context, f func(now time.Time)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return errEnded
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !t.writing {
		if err := t.store.acquire(ctx); err != nil {
			return err
		}
	}
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	if !t.writing {
		for _, table := range t.store.tables() {
			table.begin()
		}
		t.writing = true
	}
	if t.store.closed {
		return postroom.ErrClosed
	}
	f(t.store.now())
	return nil
}

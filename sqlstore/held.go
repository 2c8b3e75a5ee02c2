package sqlstore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/postroom/postroom"
)

// holdKeys announces the keys of a caller's transaction, waiting for other
// callers that hold them, without ever blocking inside the database.
func (q *session) holdKeys(ctx context.Context, round []intake) error {
	if !q.has("hold_key") {
		return nil
	}
	deadline := time.Now().Add(q.store.wait)
	keys := keysOf(byKeys(round))
	slices.SortFunc(keys, compareKeys) // crossed batches wait for one another in turn
	for _, key := range keys {
		for try := 1; ; try++ {
			var got bool
			if err := q.query(ctx, "hold_key", func(r Rows) error { return r.Scan((*boolCell)(&got)) }, q.store.keyLock(key)); err != nil {
				return err
			}
			if got {
				break
			}
			if !time.Now().Before(deadline) {
				return fmt.Errorf("message %s: %w", key, postroom.ErrInProgress)
			}
			if err := pause(ctx, try); err != nil {
				return err
			}
		}
	}
	return nil
}

// withoutHeld parts a round into what is free and what sits in a caller's open
// transaction.
func (q *session) withoutHeld(ctx context.Context, round []intake) (free, held []intake, err error) {
	if !q.has("held_keys") {
		return round, nil, nil
	}
	rows := make([][]any, len(round))
	for i, in := range round {
		rows[i] = []any{q.store.keyLock(in.put.Message.Key())}
	}
	locked := map[int64]bool{}
	err = q.each(ctx, "held_keys", rows, func(r Rows) error {
		var k int64
		defer func() { locked[k] = true }()
		return r.Scan((*intCell)(&k))
	})
	groups := map[string]bool{} // what follows a held message in its group waits with it
	for i, in := range round {
		group := in.put.Message.Group
		if locked[rows[i][0].(int64)] || groups[group] {
			held = append(held, in)
			groups[group] = group != ""
		} else {
			free = append(free, in)
		}
	}
	return free, held, err
}

// keyLock is the number under which a key is announced.
func (s *Store) keyLock(k postroom.Key) int64 {
	h := sha256.New()
	for _, part := range []string{s.schema, s.prefix, k.Consumer, k.Source, k.ID} {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part)))) //nolint:gosec // parts are short
		h.Write([]byte(part))
	}
	return int64(binary.BigEndian.Uint64(h.Sum(nil))) //nolint:gosec // any 64 bits will do
}

// putHalves goes on after a round failed at once because someone has one of its
// keys, which does not tell whose: the half that has none is taken in.
func (s *Store) putHalves(ctx context.Context, round []intake) (left []intake, err error) {
	for _, half := range [][]intake{round[:len(round)/2], round[len(round)/2:]} {
		held, err := s.putShared(ctx, half)
		if err != nil && s.dialect.Classify(err) == Busy {
			held, err = half, nil // of one
		}
		if err != nil {
			return nil, err
		}
		left = append(left, held...)
	}
	return left, nil
}

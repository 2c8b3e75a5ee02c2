package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/postroom/postroom"
)

// What follows is for databases that need several steps where others need one:
// that can't give the rows which a statement wrote, that wait where they should
// skip, or whose plain reads give the past.

// insertRows stores messages, and gives scan those that are new.
func (q *session) insertRows(ctx context.Context, rows [][]any, scan func(Rows) error) error {
	name := "insert_message"
	if !q.has("inserted") {
		return q.each(ctx, name, rows, scan)
	}
	if q.caller {
		name = "insert_message_waiting"
	}
	err := q.each(ctx, name, rows, nil)
	if err != nil && q.caller && q.store.dialect.Classify(err) == Busy {
		return fmt.Errorf("%w: %w", postroom.ErrInProgress, err)
	}
	if err != nil {
		return err
	}
	// The numbers are known: those that are there now were taken for these.
	numbers := make([][]any, len(rows))
	for i, row := range rows {
		numbers[i] = row[:1]
	}
	return q.each(ctx, "inserted", numbers, scan)
}

// absent leaves out the messages that a look finds there already: the attempt to
// insert one would lock it. A transaction that reads the past must not look, or
// the answer would be of that moment for as long as it lasts.
func (q *session) absent(ctx context.Context, round []intake, byKey map[postroom.Key]intake) ([]intake, error) {
	if q.snapshot || !q.has("inserted") {
		return round, nil
	}
	found, err := q.lookup(ctx, keysOf(byKey))
	if err != nil {
		return nil, err
	}
	var rest []intake
	for _, in := range round {
		if found[in.put.Message.Key()] == nil {
			rest = append(rest, in)
		}
	}
	if q.caller {
		return rest, nil
	}
	// An insert would wait for a key that sits in somebody's open transaction;
	// this fails instead.
	rows := make([][]any, len(rest))
	for i, in := range rest {
		rows[i] = keyValues(in.put.Message.Key())
	}
	return rest, q.each(ctx, "probe_keys", rows, func(Rows) error { return nil })
}

// lookupNow is lookup for what is to be decided now. What a transaction that
// reads the past can't see is looked up beside it.
func (q *session) lookupNow(ctx context.Context, keys []postroom.Key) (map[postroom.Key]*found, error) {
	all, err := q.lookup(ctx, keys)
	if err != nil || !q.snapshot {
		return all, err
	}
	keys = slices.DeleteFunc(keys, func(k postroom.Key) bool { return all[k] != nil })
	now, err := q.beside(ctx, keys)
	maps.Copy(all, now)
	return all, err
}

// beside looks keys up outside of the caller's transaction. With no connection
// to be had for it in time, the caller can only repeat.
func (q *session) beside(ctx context.Context, keys []postroom.Key) (map[postroom.Key]*found, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	short, cancel := context.WithTimeout(ctx, q.store.wait)
	defer cancel()
	all, err := (&session{store: q.store, conn: q.store.db}).lookup(short, keys)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: no second connection to look beside the transaction: %w", postroom.ErrRetry, err)
	}
	return all, err
}

// lookupLocked reads messages whose work rows are locked. Where a lock is no
// promise that a plain read gives what is there now, the messages are locked too
// and read by that; those that others have are left out.
func (q *session) lookupLocked(ctx context.Context, byKey map[postroom.Key]intake, work map[int64]*lockedWork) (map[postroom.Key]*found, error) {
	if !q.has("lock_messages") {
		return q.lookup(ctx, keysOf(byKey))
	}
	messages, err := q.lockMessages(ctx, slices.Sorted(maps.Keys(work)))
	if err != nil {
		return nil, err
	}
	all := make(map[postroom.Key]*found, len(messages))
	for seq, f := range messages {
		f.work, f.now = &work[seq].Work, work[seq].now
		all[f.key] = f
	}
	if !q.snapshot || len(all) == len(byKey) {
		return all, nil
	}
	return all, q.stillThere(ctx, byKey, all)
}

// stillThere asks the caller to repeat when a work row that its transaction saw
// is gone by now: to ask for it has locked the place where it was.
func (q *session) stillThere(ctx context.Context, byKey map[postroom.Key]intake, locked map[postroom.Key]*found) error {
	var rest []postroom.Key
	for _, k := range keysOf(byKey) {
		if locked[k] == nil {
			rest = append(rest, k)
		}
	}
	now, err := q.beside(ctx, rest)
	if err != nil {
		return err
	}
	for _, k := range rest {
		if f := now[k]; f == nil || f.work == nil {
			return fmt.Errorf("message %s was settled meanwhile: %w", k, postroom.ErrRetry)
		}
	}
	return nil
}

// locking is the statement that locks: where to skip a row would lock the gap
// behind it, one that waits.
func (q *session) locking(name string) string {
	if q.snapshot && q.has(name+"_waiting") {
		return name + "_waiting"
	}
	return name
}

// lockMessages locks messages that nobody else has, and reads them by that.
func (q *session) lockMessages(ctx context.Context, seqs []int64) (map[int64]*found, error) {
	locked := make(map[int64]*found, len(seqs))
	err := q.each(ctx, q.locking("lock_messages"), seqRows(seqs), func(r Rows) error {
		var f found
		defer func() { locked[f.seq] = &f }()
		return r.Scan((*textCell)(&f.key.Consumer), (*textCell)(&f.key.Source), (*textCell)(&f.key.ID), (*intCell)(&f.seq),
			(*textCell)(&f.topic), (*textCell)(&f.group), (*countCell)(&f.revision),
			(*bytesCell)(&f.hash), (*textCell)(&f.hashAlg), (*bytesCell)(&f.digest))
	})
	return locked, err
}

// sorted gives the numbers that a statement gives of some, in ascending order.
func (q *session) sorted(ctx context.Context, name string, of []int64) ([]int64, error) {
	slices.SortFunc(of, cmp.Compare[int64])
	got, err := q.seqs(ctx, name, of)
	return slices.Sorted(maps.Keys(got)), err
}

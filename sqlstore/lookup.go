package sqlstore

import (
	"context"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// found is what the tables hold of a key, without the payload.
type found struct {
	key      postroom.Key
	seq      int64
	topic    string
	group    string
	revision int
	hash     []byte
	hashAlg  string
	digest   []byte
	now      time.Time
	work     *box.Work
	done     *box.Done
}

func (f *found) known() box.Known {
	return box.Known{Seq: f.seq, Work: f.work, Digest: f.digest, Hash: f.hash, HashAlg: f.hashAlg, Group: f.group}
}

// lookup reads what there is of some keys, without locks.
func (q *session) lookup(ctx context.Context, keys []postroom.Key) (map[postroom.Key]*found, error) {
	rows := make([][]any, len(keys))
	for i, k := range keys {
		rows[i] = keyValues(k)
	}
	all := make(map[postroom.Key]*found, len(keys))
	err := q.each(ctx, "lookup", rows, func(r Rows) error {
		var (
			f    found
			work box.Work
			done box.Done
		)
		cells := []any{
			(*textCell)(&f.key.Consumer), (*textCell)(&f.key.Source), (*textCell)(&f.key.ID), (*intCell)(&f.seq),
			(*textCell)(&f.topic), (*textCell)(&f.group), (*countCell)(&f.revision),
			(*bytesCell)(&f.hash), (*textCell)(&f.hashAlg), (*bytesCell)(&f.digest), (*timeCell)(&f.now),
		}
		if err := r.Scan(append(append(cells, workCells(&work)...), doneCells(&done)...)...); err != nil {
			return err
		}
		if work.Seq != 0 {
			f.work = &work
		}
		if done.Seq != 0 {
			f.done = &done
		}
		all[f.key] = &f
		return nil
	})
	return all, err
}

// lockWork locks work rows in ascending order, leaving out those that another
// transaction has (a transaction that reads the past waits for them), and gives them as they are under the lock.
func (q *session) lockWork(ctx context.Context, seqs []int64) (map[int64]*lockedWork, error) {
	locked := make(map[int64]*lockedWork, len(seqs))
	err := q.each(ctx, q.locking("lock_work"), seqRows(seqs), func(r Rows) error {
		var l lockedWork
		if err := r.Scan(append(workCells(&l.Work), (*timeCell)(&l.now))...); err != nil {
			return err
		}
		locked[l.Seq] = &l
		return nil
	})
	return locked, err
}

type lockedWork struct {
	box.Work
	now time.Time
}

// seqs runs a statement over numbers that gives numbers.
func (q *session) seqs(ctx context.Context, name string, of []int64) (map[int64]bool, error) {
	got := make(map[int64]bool, len(of))
	err := q.each(ctx, name, seqRows(of), func(r Rows) error {
		var seq int64
		defer func() { got[seq] = true }()
		return r.Scan((*intCell)(&seq))
	})
	return got, err
}

func keysOf(byKey map[postroom.Key]intake) []postroom.Key {
	keys := make([]postroom.Key, 0, len(byKey))
	for k := range byKey {
		keys = append(keys, k)
	}
	return keys
}

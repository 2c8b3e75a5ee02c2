package sqlstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// Move moves messages without a lease. See box.Store.
func (s *Store) Move(ctx context.Context, moves []box.Move) ([]box.MoveResult, error) {
	results := make([]box.MoveResult, len(moves))
	for start := 0; start < len(moves); {
		// No key twice in one transaction, so that each sees the one before.
		end, seen := start, map[postroom.Key]bool{}
		for end < len(moves) && !seen[moves[end].Key] {
			seen[moves[end].Key] = true
			end++
		}
		if err := s.moveAll(ctx, moves[start:end], results[start:end]); err != nil {
			return nil, err
		}
		start = end
	}
	return results, nil
}

// moveAll moves messages with distinct keys. One whose row stays locked beyond
// the bound is as good as leased: somebody works on it.
func (s *Store) moveAll(ctx context.Context, moves []box.Move, results []box.MoveResult) error {
	open := make([]int, len(moves))
	for i := range open {
		open[i] = i
	}
	deadline := time.Now().Add(s.wait)
	for try := 1; len(open) > 0; try++ {
		var still []int
		var vacated map[string]bool
		err := s.write(ctx, "move", func(q *session) (err error) {
			still, vacated, err = q.move(ctx, moves, results, open)
			return err
		})
		if err != nil {
			return err
		}
		for consumer := range vacated {
			_ = s.fillLanes(ctx, consumer)
		}
		if len(still) > 0 && !time.Now().Before(deadline) {
			for _, i := range still {
				results[i] = box.MoveResult{Err: postroom.ErrLeased, State: postroom.StateProcessing}
			}
			return nil
		}
		if len(still) > 0 {
			if err := pause(ctx, try); err != nil {
				return err
			}
		}
		open = still
	}
	return nil
}

// move moves the messages whose rows it can lock, and gives the rest.
func (q *session) move(ctx context.Context, moves []box.Move, results []box.MoveResult, open []int) (still []int, vacated map[string]bool, err error) {
	keys := make([]postroom.Key, len(open))
	for i, at := range open {
		keys[i] = moves[at].Key
	}
	all, locked, err := q.lockStanding(ctx, keys)
	if err != nil {
		return nil, nil, err
	}
	heads, err := q.heads(ctx, all)
	if err != nil {
		return nil, nil, err
	}
	var (
		writes []write
		audit  [][]any
	)
	for _, at := range open {
		m := &moves[at]
		f := all[m.Key]
		if f != nil && !locked[f.seq] {
			still = append(still, at)
			continue
		}
		var change box.Change
		results[at], change = m.Decide(standing(f, heads), clockOf(f))
		if change.Fate != box.Untouched {
			writes = append(writes, write{Change: change})
		}
		if m.Actor != "" && results[at].Changed && results[at].Err == nil {
			audit = append(audit, []any{m.Actor, m.Action.String(), postroom.ErrorText(m.Reason), m.Key.Consumer, m.Key.Source, m.Key.ID, ""})
		}
	}
	if vacated, err = q.apply(ctx, writes); err != nil {
		return nil, nil, err
	}
	return still, vacated, q.each(ctx, "insert_audit", audit, nil)
}

// lockStanding locks the work or done rows of messages and reads them under the
// lock. A message that is not there needs none.
func (q *session) lockStanding(ctx context.Context, keys []postroom.Key) (map[postroom.Key]*found, map[int64]bool, error) {
	before, err := q.lookup(ctx, keys)
	if err != nil {
		return nil, nil, err
	}
	var work, done []int64
	for _, f := range before {
		if f.work != nil {
			work = append(work, f.seq)
		} else if f.done != nil {
			done = append(done, f.seq)
		}
	}
	slices.Sort(work)
	slices.Sort(done)
	lockedWork, err := q.lockWork(ctx, work)
	if err != nil {
		return nil, nil, err
	}
	locked, err := q.seqs(ctx, "lock_done", done)
	if err != nil {
		return nil, nil, err
	}
	for seq := range lockedWork {
		locked[seq] = true
	}
	after, err := q.lookup(ctx, keys)
	return after, locked, err
}

// heads tells which messages are still named by their lane: of the dead, and of
// those that an expired lease may turn out to have killed.
func (q *session) heads(ctx context.Context, all map[postroom.Key]*found) (map[int64]bool, error) {
	var lanes [][]any
	for _, f := range all {
		if f.work != nil && f.work.Group != "" && (f.work.Stage == postroom.StageDead || f.work.Stage == postroom.StageLeased) {
			lanes = append(lanes, []any{f.work.Consumer, f.work.Group, f.seq})
		}
	}
	slices.SortFunc(lanes, func(a, b []any) int {
		return cmp.Or(cmp.Compare(a[0].(string), b[0].(string)), cmp.Compare(a[1].(string), b[1].(string)))
	})
	heads := map[int64]bool{}
	err := q.each(ctx, "lane_heads", lanes, func(r Rows) error {
		var head int64
		defer func() { heads[head] = true }()
		return r.Scan((*intCell)(&head))
	})
	return heads, err
}

func standing(f *found, heads map[int64]bool) box.Standing {
	if f == nil {
		return box.Standing{}
	}
	return box.Standing{Work: f.work, Done: f.done, Topic: f.topic, Group: f.group, Revision: f.revision, Head: heads[f.seq]}
}

func clockOf(f *found) time.Time {
	if f == nil {
		return time.Time{}
	}
	return f.now
}

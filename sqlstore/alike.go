package sqlstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// Where a statement can lock leases, make outcomes of them and tell which, without
// waiting for anybody, those that end alike are acknowledged together.

// mostAlike is how many statements that may take, before it takes fewer to settle
// them one by one.
const mostAlike = 8

// acksAlike reports whether that can be done in this session.
func (q *session) acksAlike() bool { return q.single("ack_alike") && !q.caller }

// settleAlike acknowledges what it can together, and settles the rest one by one.
func (q *session) settleAlike(ctx context.Context, settlements []box.Settlement) ([]box.Settled, map[string]bool, error) {
	settled, rest, err := q.acknowledge(ctx, settlements)
	if err != nil {
		return nil, nil, err
	}
	return q.settleOthers(ctx, settlements, settled, rest)
}

// acknowledge acknowledges what it can together, and gives the rest.
func (q *session) acknowledge(ctx context.Context, settlements []box.Settlement) (settled []box.Settled, rest []int, err error) {
	groups := map[alike][]int{}
	for like, at := range successes(settlements) {
		like.fence = 0 // each has its own
		// Those in groups have lanes to vacate.
		at = slices.DeleteFunc(at, func(i int) bool { return settlements[i].Grouped })
		groups[like] = append(groups[like], at...)
	}
	if !q.acksAlike() || len(groups) > mostAlike {
		groups = nil
	}
	settled = make([]box.Settled, len(settlements))
	var done []int64
	for like, at := range groups {
		slices.SortFunc(at, func(a, b int) int { return cmp.Compare(settlements[a].Lease.Seq, settlements[b].Lease.Seq) })
		index := make(map[int64]int, len(at))
		rows := make([][]any, len(at))
		for i, n := range at {
			l := &settlements[n].Lease
			index[l.Seq] = n
			rows[i] = []any{l.Seq, l.Fence}
		}
		err := q.each(ctx, "ack_alike", rows, func(r Rows) error {
			var (
				seq int64
				old bool
			)
			if err := r.Scan((*intCell)(&seq), (*boolCell)(&old)); err != nil {
				return err
			}
			settled[index[seq]] = box.Settled{Applied: true, State: postroom.StateDone, Superseded: old}
			done = append(done, seq)
			return nil
		}, like.owner, int64(like.revision), like.handler, like.discarded, like.note)
		if err != nil {
			return nil, nil, err
		}
	}
	return settled, unapplied(settled), q.each(ctx, "delete_work", seqRows(done), nil)
}

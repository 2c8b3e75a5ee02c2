package sqlstore

import (
	"context"
	"strconv"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// Where one transaction writes at a time, what it reads stays: leases that end
// alike can be acknowledged together, by their numbers and fences.

// alike is what such leases have in common.
type alike struct {
	owner     string
	revision  int
	handler   string
	discarded bool
	note      string
}

// settleTogether acknowledges what it can together, and the rest one by one.
func (q *session) settleTogether(ctx context.Context, settlements []box.Settlement) ([]box.Settled, map[string]bool, error) {
	settled := make([]box.Settled, len(settlements))
	groups, at := successes(settlements)
	var done []int64
	for like, leases := range groups {
		err := q.query(ctx, "ack", func(r Rows) error {
			var (
				seq int64
				old bool
			)
			if err := r.Scan((*intCell)(&seq), (*boolCell)(&old)); err != nil {
				return err
			}
			settled[at[seq]] = box.Settled{Applied: true, State: postroom.StateDone, Superseded: old}
			done = append(done, seq)
			return nil
		}, fences(leases), like.owner, int64(like.revision), like.handler, like.discarded, like.note)
		if err != nil {
			return nil, nil, err
		}
	}
	if err := q.each(ctx, "delete_work", seqRows(done), nil); err != nil {
		return nil, nil, err
	}
	var rest []int
	for i := range settlements {
		if !settled[i].Applied {
			rest = append(rest, i)
		}
	}
	if len(rest) == 0 {
		return settled, nil, nil
	}
	more, vacated, err := q.settleEach(ctx, pick(settlements, rest))
	if err != nil {
		return nil, nil, err
	}
	for i, n := range rest {
		settled[n] = more[i]
	}
	return settled, vacated, nil
}

// successes groups settlements that are nothing but success, and gives where each
// is. Of a lease that is named twice, none is among them.
func successes(settlements []box.Settlement) (groups map[alike][]postroom.Lease, at map[int64]int) {
	named := make(map[int64]int, len(settlements))
	for i := range settlements {
		named[settlements[i].Lease.Seq]++
	}
	groups, at = map[alike][]postroom.Lease{}, make(map[int64]int, len(settlements))
	for i := range settlements {
		s := &settlements[i]
		if s.Verb != box.Ack || s.Forget || named[s.Lease.Seq] > 1 {
			continue
		}
		like := alike{s.Lease.Owner, s.Lease.Revision, s.Handler, s.Discarded, postroom.ErrorText(s.Note)}
		groups[like] = append(groups[like], s.Lease)
		at[s.Lease.Seq] = i
	}
	return groups, at
}

// fences is a JSON object of fences by number.
func fences(leases []postroom.Lease) string {
	text := []byte{'{'}
	for i, l := range leases {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, '"')
		text = strconv.AppendInt(text, l.Seq, 10)
		text = append(text, '"', ':')
		text = strconv.AppendInt(text, l.Fence, 10)
	}
	return string(append(text, '}'))
}

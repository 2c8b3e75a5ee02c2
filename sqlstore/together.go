package sqlstore

import (
	"context"
	"slices"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// Where one transaction writes at a time, what it reads stays: messages are read
// before they are leased, and leases that end alike are acknowledged together, by
// their numbers.

// claimAlone reads what is ready, and leases just that. What is the same for all
// of it comes from elsewhere: each column of each row costs.
func (q *session) claimAlone(ctx context.Context, name string, limit int, req box.ClaimRequest, from int64) ([]claimed, error) {
	now, err := q.clock(ctx)
	if err != nil {
		return nil, err
	}
	c := &claims{now: now, work: box.Work{Owner: req.Owner, Until: now.Add(req.Lease.Truncate(time.Microsecond))}}
	m, w := &c.message, &c.work
	c.cells = []any{
		(*textCell)(&m.Source), (*textCell)(&m.ID), (*textCell)(&m.Group), (*textCell)(&m.Topic),
		(*bytesCell)(&m.Payload), (*headersCell)(&m.Headers), (*bytesCell)(&m.Hash), (*textCell)(&m.HashAlg),
		(*timeCell)(&m.DueAt), (*timeCell)(&m.ExpiresAt), (*timeCell)(&m.OccurredAt),
		(*textCell)(&m.CorrelationID), (*textCell)(&m.CausationID), (*timeCell)(&m.FirstSeen), (*countCell)(&m.Revision),
		(*intCell)(&w.Seq), (*intCell)(&w.ReadyPosition), (*countCell)(&w.Attempt), (*timeCell)(&w.Expires),
		(*intCell)(&w.Fence), (*textCell)(&w.LastError), (*timeCell)(&w.LastSeen),
	}
	if err := q.query(ctx, name, c.scan, req.Consumer, int64(limit), from); err != nil {
		return nil, err
	}
	rows := make([][]any, len(c.all))
	for i := range c.all {
		one := &c.all[i]
		one.Consumer, one.stale = req.Consumer, false
		one.Lease.Fence++ // as it is about to be
		rows[i] = []any{one.Lease.Seq}
	}
	return c.all, q.each(ctx, "lease", rows, nil, req.Owner, timeValue(w.Until))
}

// alike is what such leases have in common.
type alike struct {
	owner     string
	fence     int64
	revision  int
	handler   string
	discarded bool
	note      string
}

// settleTogether acknowledges what it can together, and the rest one by one.
func (q *session) settleTogether(ctx context.Context, settlements []box.Settlement) ([]box.Settled, map[string]bool, error) {
	settled := make([]box.Settled, len(settlements))
	for like, at := range successes(settlements) {
		done, err := q.ackAlike(ctx, like, settlements, at)
		if err != nil {
			return nil, nil, err
		}
		for _, i := range done {
			settled[i] = box.Settled{Applied: true, State: postroom.StateDone}
		}
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

// ackAlike acknowledges the settlements at the given indices, and gives those that
// it could.
func (q *session) ackAlike(ctx context.Context, like alike, settlements []box.Settlement, at []int) ([]int, error) {
	rows := make([][]any, len(at))
	for i, n := range at {
		rows[i] = []any{settlements[n].Lease.Seq}
	}
	current := []any{like.owner, like.fence, int64(like.revision)}
	if err := q.each(ctx, "ack", rows, nil, append(current, like.handler, like.discarded, like.note)...); err != nil {
		return nil, err
	}
	var n int
	if err := q.query(ctx, "changes", func(r Rows) error { return r.Scan((*countCell)(&n)) }); err != nil {
		return nil, err
	}
	if n < len(at) {
		// Their work rows are still there, and tell which they were.
		acked, err := q.acked(ctx, rows, current)
		if err != nil {
			return nil, err
		}
		at = slices.DeleteFunc(at, func(n int) bool { return !acked[settlements[n].Lease.Seq] })
		rows = slices.DeleteFunc(rows, func(row []any) bool { return !acked[row[0].(int64)] })
	}
	return at, q.each(ctx, "delete_work", rows, nil)
}

// acked tells which of the leases are current.
func (q *session) acked(ctx context.Context, rows [][]any, current []any) (map[int64]bool, error) {
	acked := map[int64]bool{}
	err := q.each(ctx, "acked", rows, func(r Rows) error {
		var seq int64
		defer func() { acked[seq] = true }()
		return r.Scan((*intCell)(&seq))
	}, current...)
	return acked, err
}

// successes groups settlements that are nothing but success, by index. Of a lease
// that is named twice, none is among them.
func successes(settlements []box.Settlement) map[alike][]int {
	named := make(map[int64]int, len(settlements))
	for i := range settlements {
		named[settlements[i].Lease.Seq]++
	}
	groups := map[alike][]int{}
	for i := range settlements {
		s := &settlements[i]
		if s.Verb != box.Ack || s.Forget || named[s.Lease.Seq] > 1 {
			continue
		}
		like := alike{s.Lease.Owner, s.Lease.Fence, s.Lease.Revision, s.Handler, s.Discarded, postroom.ErrorText(s.Note)}
		groups[like] = append(groups[like], i)
	}
	return groups
}

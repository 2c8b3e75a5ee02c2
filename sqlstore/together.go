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
	seqs := make([]int64, len(c.all))
	for i := range c.all {
		one := &c.all[i]
		one.Consumer, one.stale = req.Consumer, false
		one.Lease.Fence++ // as it is about to be
		seqs[i] = one.Lease.Seq
	}
	return c.all, q.byNumber(ctx, "lease", q.parts(seqs), req.Owner, timeValue(w.Until))
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

func likeOf(s *box.Settlement) alike {
	return alike{s.Lease.Owner, s.Lease.Fence, s.Lease.Revision, s.Handler, s.Discarded, postroom.ErrorText(s.Note)}
}

// settleTogether acknowledges what it can together, and the rest one by one.
func (q *session) settleTogether(ctx context.Context, settlements []box.Settlement) ([]box.Settled, map[string]bool, error) {
	settled := make([]box.Settled, len(settlements))
	vacated := map[string]bool{}
	for like, at := range successes(settlements) {
		done, err := q.ackAlike(ctx, like, settlements, at, vacated)
		if err != nil {
			return nil, nil, err
		}
		for _, i := range done {
			settled[i] = box.Settled{Applied: true, State: postroom.StateDone}
		}
	}
	settled, more, err := q.settleOthers(ctx, settlements, settled, unapplied(settled))
	return settled, merge(vacated, more), err
}

// ackAlike acknowledges the settlements at the given indices, and gives those that
// it could. It adds the consumers whose lanes that vacates.
func (q *session) ackAlike(ctx context.Context, like alike, settlements []box.Settlement, at []int, vacated map[string]bool) ([]int, error) {
	seqs := make([]int64, len(at))
	for i, n := range at {
		seqs[i] = settlements[n].Lease.Seq
	}
	current := []any{like.owner, like.fence, int64(like.revision)}
	end := append(slices.Clone(current), like.handler, like.discarded, like.note)
	parts, all := q.parts(seqs), 0
	for i := range parts {
		if err := q.byNumber(ctx, "ack", parts[i:i+1], end...); err != nil {
			return nil, err
		}
		var n int
		if err := q.query(ctx, "changes", func(r Rows) error { return r.Scan((*countCell)(&n)) }); err != nil {
			return nil, err
		}
		all += n
	}
	if all < len(at) {
		// Their work rows are still there, and tell which they were.
		acked, err := q.acked(ctx, seqs, current)
		if err != nil {
			return nil, err
		}
		at = slices.DeleteFunc(at, func(n int) bool { return !acked[settlements[n].Lease.Seq] })
		seqs = slices.DeleteFunc(seqs, func(seq int64) bool { return !acked[seq] })
		parts = q.parts(seqs)
	}
	if err := q.vacateNumbers(ctx, seqs, vacated); err != nil {
		return nil, err
	}
	return at, q.byNumber(ctx, "delete_work", parts)
}

// vacateNumbers is vacate for numbers of messages, some of which may be heads.
func (q *session) vacateNumbers(ctx context.Context, seqs []int64, consumers map[string]bool) error {
	var lanes bool
	if err := q.query(ctx, "lanes", func(r Rows) error { return r.Scan((*boolCell)(&lanes)) }); err != nil || !lanes {
		return err
	}
	return q.each(ctx, "vacate", seqRows(seqs), func(r Rows) error {
		var consumer string
		defer func() { consumers[consumer] = true }()
		return r.Scan((*textCell)(&consumer))
	})
}

// acked tells which of the leases are current.
func (q *session) acked(ctx context.Context, seqs []int64, current []any) (map[int64]bool, error) {
	acked := map[int64]bool{}
	err := q.each(ctx, "acked", seqRows(seqs), func(r Rows) error {
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
		like := likeOf(s)
		groups[like] = append(groups[like], i)
	}
	return groups
}

package sqlstore

import (
	"context"
	"slices"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// Reap ends expired leases. See box.Sweeper.
func (s *Store) Reap(ctx context.Context, req box.ReapRequest) ([]box.Reaped, error) {
	if req.Limit <= 0 {
		req.Limit = 500
	}
	var all []box.Reaped
	for more := true; more && req.Limit > 0; {
		var (
			reaped []box.Reaped
			err    error
		)
		reaped, more, err = s.reap(ctx, req)
		if err != nil && len(all) == 0 {
			return nil, err
		}
		all, req.Limit = append(all, reaped...), req.Limit-len(reaped)
	}
	return all, nil
}

// reap is one pass. Where claims tell which leases there are, there may be more of
// them than one pass looks through.
func (s *Store) reap(ctx context.Context, req box.ReapRequest) (reaped []box.Reaped, more bool, err error) {
	var vacated map[string]bool
	err = s.write(ctx, "reap", func(q *session) error {
		reaped, more = nil, false
		var writes []write
		err := q.query(ctx, "expired_leases", func(r Rows) error {
			var (
				w          box.Work
				now        time.Time
				source, id string
			)
			if err := r.Scan(append(workCells(&w), (*timeCell)(&now), (*textCell)(&source), (*textCell)(&id))...); err != nil {
				return err
			}
			c := box.Reap(w, now, req.ReapRules)
			writes = append(writes, write{Change: c})
			reaped = append(reaped, box.Reaped{
				Key:   postroom.Key{Consumer: w.Consumer, Source: source, ID: id},
				Topic: w.Topic, State: c.State(), Lost: c.Work.Lost, Error: c.Died,
			})
			return nil
		}, req.Consumer, int64(req.Limit))
		if err != nil {
			return err
		}
		if vacated, err = q.apply(ctx, writes); err != nil || !q.has("forget_claims") {
			return err
		}
		return q.query(ctx, "forget_claims", func(r Rows) error { return r.Scan((*boolCell)(&more)) }, req.Consumer)
	})
	if err != nil {
		return nil, false, err
	}
	s.fillAll(ctx, vacated)
	return reaped, more, nil
}

// Cleanup removes one batch of what is past its retention. See box.Sweeper.
func (s *Store) Cleanup(ctx context.Context, req box.CleanupRequest) (box.CleanupResult, error) {
	if req.Limit <= 0 {
		req.Limit = 1000
	}
	var res box.CleanupResult
	err := s.write(ctx, "cleanup", func(q *session) error {
		res = box.CleanupResult{}
		// Those whose payloads were purged are the older ones.
		records, err := q.old(ctx, req, req.Records, true)
		if err != nil {
			return err
		}
		rest := req
		rest.Limit -= len(records)
		whole, err := q.old(ctx, rest, req.Records, false)
		if err != nil {
			return err
		}
		records = append(records, whole...)
		// Exactly the messages of the done rows that this transaction holds.
		for _, step := range []string{"delete_done", "delete_message"} {
			if err := q.each(ctx, step, seqRows(records), nil); err != nil {
				return err
			}
		}
		rest.Limit = req.Limit - len(records)
		payloads, err := q.old(ctx, rest, req.Payloads, false)
		if err != nil {
			return err
		}
		for _, step := range []string{"purge_payloads", "mark_purged"} {
			if err := q.each(ctx, step, seqRows(payloads), nil); err != nil {
				return err
			}
		}
		res.Records, res.Payloads = len(records), len(payloads)
		res.More = len(records)+len(payloads) == req.Limit
		return nil
	})
	return res, err
}

// old locks done rows past an age, those with or without payloads; 0 means that
// there is none.
func (q *session) old(ctx context.Context, req box.CleanupRequest, age time.Duration, purged bool) ([]int64, error) {
	if age <= 0 || req.Limit <= 0 {
		return nil, nil
	}
	var seqs []int64
	err := q.query(ctx, "old_done", func(r Rows) error {
		var seq int64
		defer func() { seqs = append(seqs, seq) }()
		return r.Scan((*intCell)(&seq))
	}, req.Consumer, micros(age), int64(req.Limit), purged)
	if err != nil || !q.has("lock_messages") {
		return seqs, err
	}
	// A duplicate locks the message for as long as its sender's transaction goes.
	free, err := q.lockMessages(ctx, seqs)
	return slices.DeleteFunc(seqs, func(seq int64) bool { return free[seq] == nil }), err
}

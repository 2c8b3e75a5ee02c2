package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// Reap ends the leases that have expired, the oldest first.
func (s *Store) Reap(ctx context.Context, req box.ReapRequest) ([]box.Reaped, error) {
	limit := cmp.Or(req.Limit, 500)
	var reaped []box.Reaped
	err := s.write(ctx, nil, func(now time.Time) {
		vacated := vacancy{}
		for _, w := range s.expired(req.Consumer, limit, now) {
			row, _ := s.messages.get(w.Seq)
			c := box.Reap(w, now, req.ReapRules)
			s.apply(w.Seq, &c)
			vacated.note(&c)
			reaped = append(reaped, box.Reaped{
				Key: row.key, Topic: row.topic, State: c.State(), Lost: c.Work.Lost, Error: c.Died,
			})
		}
		s.fillAll(vacated)
	})
	return reaped, err
}

func (s *Store) expired(consumer string, limit int, now time.Time) []box.Work {
	var rows []box.Work
	for _, w := range s.work.rows {
		if w.Consumer == consumer && w.Stage == postroom.StageLeased && !w.Until.After(now) {
			rows = append(rows, w)
		}
	}
	slices.SortFunc(rows, func(a, b box.Work) int {
		return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.Seq, b.Seq))
	})
	return rows[:min(limit, len(rows))]
}

// Cleanup removes one batch of what is past its retention, the oldest first.
func (s *Store) Cleanup(ctx context.Context, req box.CleanupRequest) (box.CleanupResult, error) {
	limit := cmp.Or(req.Limit, 1000)
	var res box.CleanupResult
	err := s.write(ctx, nil, func(now time.Time) {
		for _, d := range s.past(req.Consumer, req.Records, limit, now, true) {
			s.done.delete(d.Seq)
			s.forget(d.Seq)
			res.Records++
		}
		for _, d := range s.past(req.Consumer, req.Payloads, limit-res.Records, now, false) {
			d.Purged = true
			s.done.put(d.Seq, d)
			row, _ := s.messages.get(d.Seq)
			row.payload, row.headers = nil, nil
			s.messages.put(d.Seq, row)
			res.Payloads++
		}
		res.More = res.Records+res.Payloads == limit
	})
	return res, err
}

// past gives the done rows of at least the given age.
func (s *Store) past(consumer string, age time.Duration, limit int, now time.Time, purged bool) []box.Done {
	if age <= 0 {
		return nil
	}
	var rows []box.Done
	for _, d := range s.done.rows {
		if d.Consumer == consumer && !d.At.After(now.Add(-age)) && (purged || !d.Purged) {
			rows = append(rows, d)
		}
	}
	slices.SortFunc(rows, func(a, b box.Done) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Seq, b.Seq))
	})
	return rows[:min(limit, len(rows))]
}

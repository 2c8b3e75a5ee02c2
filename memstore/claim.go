package memstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// Claim leases ready messages.
func (s *Store) Claim(ctx context.Context, req box.ClaimRequest) ([]*postroom.Message, error) {
	var claimed, expired []*postroom.Message
	err := s.write(ctx, nil, func(now time.Time) {
		if !req.ReadyOnly {
			s.promote(req.Consumer, now)
			s.unpark(req.Consumer)
			s.sort(req.Consumer)
			s.fill(req.Consumer)
		}
		vacated := vacancy{}
		for _, w := range s.claimable(req) {
			if m, gone := s.lease(w, req, now, vacated); gone {
				expired = append(expired, m)
			} else {
				claimed = append(claimed, m)
			}
		}
		s.fillAll(vacated)
	})
	if err != nil {
		return nil, err
	}
	for _, m := range expired {
		if req.Expired != nil {
			req.Expired(m)
		}
	}
	return claimed, nil
}

// claimable gives the messages whose turn it is.
func (s *Store) claimable(req box.ClaimRequest) []box.Work {
	stage, limit := postroom.StageReady, max(req.Limit, 0)
	if req.Suspect {
		stage, limit = postroom.StageSuspect, min(limit, 1)
	}
	var ready []box.Work
	for _, w := range s.work.rows {
		if w.Consumer == req.Consumer && w.Stage == stage {
			ready = append(ready, w)
		}
	}
	slices.SortFunc(ready, func(a, b box.Work) int { return cmp.Compare(a.ReadyPosition, b.ReadyPosition) })
	return ready[:min(limit, len(ready))]
}

// lease gives the message under its new lease, or as it was when it expired.
func (s *Store) lease(w box.Work, req box.ClaimRequest, now time.Time, vacated vacancy) (m *postroom.Message, expired bool) {
	w.Stage = postroom.StageLeased
	w.Owner, w.Until = req.Owner, now.Add(req.Lease).Truncate(time.Microsecond)
	w.Fence++
	if !w.Expires.IsZero() && !w.Expires.After(now) {
		expire := box.Settlement{Lease: w.Lease(), Verb: box.Expire, Hold: req.Hold}
		_, c := expire.Decide(w, now)
		s.apply(w.Seq, &c)
		vacated.note(&c)
		row, _ := s.messages.get(w.Seq)
		return row.delivery(&w, true), true
	}
	s.work.put(w.Seq, w)
	row, _ := s.messages.get(w.Seq)
	return row.delivery(&w, true), false
}

// Settle ends leases.
func (s *Store) Settle(ctx context.Context, tx postroom.Tx, settlements []box.Settlement) ([]box.Settled, error) {
	results := make([]box.Settled, len(settlements))
	err := s.write(ctx, tx, func(now time.Time) {
		vacated := vacancy{}
		for i := range settlements {
			w, ok := s.work.get(settlements[i].Lease.Seq)
			if !ok {
				continue
			}
			res, c := settlements[i].Decide(w, now)
			s.apply(w.Seq, &c)
			results[i] = res
			vacated.note(&c)
		}
		if t, ok := tx.(*Tx); ok {
			if t.vacated[s] == nil {
				t.vacated[s] = vacancy{}
			}
			maps.Copy(t.vacated[s], vacated)
		} else {
			s.fillAll(vacated)
		}
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// Extend renews leases.
func (s *Store) Extend(ctx context.Context, leases []postroom.Lease, d time.Duration) ([]box.Extension, error) {
	results := make([]box.Extension, len(leases))
	err := s.write(ctx, nil, func(now time.Time) {
		for i, l := range leases {
			w, ok := s.work.get(l.Seq)
			if !ok || !w.Current(l) {
				continue
			}
			w.Until = now.Add(d).Truncate(time.Microsecond)
			s.work.put(w.Seq, w)
			results[i] = box.Extension{Extended: true, Until: w.Until}
		}
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

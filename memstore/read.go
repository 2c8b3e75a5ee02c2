package memstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// Get gives the whole record of a message.
func (s *Store) Get(ctx context.Context, key postroom.Key) (*box.Record, error) {
	var rec *box.Record
	err := s.read(ctx, func() error {
		seq, ok := s.keys.committed(key)
		if !ok {
			return postroom.ErrNotFound
		}
		rec = s.record(seq, true)
		return nil
	})
	return rec, err
}

// record puts together what is committed of a message.
func (s *Store) record(seq int64, withPayload bool) *box.Record {
	row, _ := s.messages.committed(seq)
	w, live := s.work.committed(seq)
	if !live {
		d, _ := s.done.committed(seq)
		rec := &box.Record{Message: *row.delivery(nil, withPayload), Seq: seq, State: postroom.StateDone, Done: d}
		rec.LastSeen = d.LastSeen
		return rec
	}
	rec := &box.Record{
		Message: *row.delivery(&w, withPayload),
		Seq:     seq, State: w.Stage.State(), Stage: w.Stage, Lost: w.Lost, Guard: w.Guard,
	}
	if w.Stage == postroom.StageScheduled || w.Stage == postroom.StageDeferred {
		rec.NextAt = w.Next()
	}
	return rec
}

// List gives messages in ascending order of Seq.
func (s *Store) List(ctx context.Context, f box.Filter) ([]*box.Record, error) {
	limit := min(cmp.Or(f.Limit, 100), 1000)
	var records []*box.Record
	err := s.read(ctx, func() error {
		var found []int64
		for seq, row := range s.messages.all() {
			if seq > f.After && s.matches(&f, seq, &row) {
				found = append(found, seq)
			}
		}
		slices.Sort(found)
		for _, seq := range found[:min(limit, len(found))] {
			records = append(records, s.record(seq, f.WithPayload))
		}
		return nil
	})
	return records, err
}

func (s *Store) matches(f *box.Filter, seq int64, row *message) bool {
	for _, c := range []struct{ want, have string }{
		{f.Consumer, row.key.Consumer},
		{f.Topic, row.topic},
		{f.Source, row.key.Source},
		{f.Group, row.group},
	} {
		if c.want != "" && c.want != c.have {
			return false
		}
	}
	if f.State == postroom.StateNone {
		return true
	}
	w, live := s.work.committed(seq)
	if !live {
		d, _ := s.done.committed(seq)
		return f.State == postroom.StateDone && !d.At.Before(f.DoneFrom) && (f.DoneUntil.IsZero() || d.At.Before(f.DoneUntil))
	}
	since := row.firstSeen
	if row.dueAt.After(since) {
		since = row.dueAt
	}
	return f.State == w.Stage.State() && (f.Overdue == 0 || since.Before(s.now().Add(-f.Overdue)))
}

// Audit gives the newest operator actions first.
func (s *Store) Audit(ctx context.Context, f box.AuditFilter) ([]box.AuditEntry, error) {
	limit := cmp.Or(f.Limit, 100)
	var entries []box.AuditEntry
	err := s.read(ctx, func() error {
		for _, e := range s.audit.all() {
			if (f.Consumer == "" || f.Consumer == e.Key.Consumer) && (f.Before == 0 || e.Entry < f.Before) {
				entries = append(entries, e)
			}
		}
		return nil
	})
	slices.SortFunc(entries, func(a, b box.AuditEntry) int { return cmp.Compare(b.Entry, a.Entry) })
	return entries[:min(limit, len(entries))], err
}

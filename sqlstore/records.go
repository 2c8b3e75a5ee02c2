package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// Get gives the record of a message. See box.Store.
func (s *Store) Get(ctx context.Context, key postroom.Key) (*box.Record, error) {
	var rec *box.Record
	err := s.read("get", func(q *session) error {
		return q.query(ctx, "get", func(r Rows) (err error) {
			rec, err = scanRecord(r)
			return err
		}, keyValues(key)...)
	})
	if err == nil && rec == nil {
		return nil, fmt.Errorf("get %s: %w", key, postroom.ErrNotFound)
	}
	return rec, err
}

// List gives messages in ascending order of Seq. See box.Lister.
func (s *Store) List(ctx context.Context, f box.Filter) ([]*box.Record, error) {
	if f.Limit <= 0 {
		f.Limit = 100
	}
	f.Limit = min(f.Limit, 1000)
	args := []any{f.Consumer, f.After, f.Topic, f.Source, f.Group, int64(f.State), f.WithPayload, int64(f.Limit)}
	name := "list_live"
	switch f.State {
	case postroom.StateNone:
		name = "list_all"
	case postroom.StateDone:
		name, args = "list_done", append(args, timeValue(f.DoneFrom), timeValue(f.DoneUntil))
	default:
		args = append(args, (f.Overdue + time.Microsecond - 1).Microseconds())
	}
	var records []*box.Record
	err := s.read("list", func(q *session) error {
		return q.query(ctx, name, func(r Rows) error {
			rec, err := scanRecord(r)
			records = append(records, rec)
			return err
		}, args...)
	})
	return records, err
}

func scanRecord(r Rows) (*box.Record, error) {
	var (
		rec  box.Record
		work box.Work
	)
	cells := append(messageCells(&rec.Message), (*intCell)(&rec.Seq))
	if err := r.Scan(append(append(cells, workCells(&work)...), doneCells(&rec.Done)...)...); err != nil {
		return nil, err
	}
	if rec.Done.Seq != 0 {
		rec.State, rec.LastSeen = postroom.StateDone, rec.Done.LastSeen
		return &rec, nil
	}
	rec.Done = box.Done{} // there is no such row
	deliver(&rec.Message, &work)
	if work.Stage != postroom.StageLeased {
		rec.Lease = postroom.Lease{}
	}
	rec.Stage, rec.State = work.Stage, work.Stage.State()
	rec.Lost, rec.Guard = work.Lost, work.Guard
	if work.Stage == postroom.StageScheduled || work.Stage == postroom.StageDeferred {
		rec.NextAt = work.Next()
	}
	return &rec, nil
}

// Audit gives the newest operator actions first. See box.Lister.
func (s *Store) Audit(ctx context.Context, f box.AuditFilter) ([]box.AuditEntry, error) {
	if f.Limit <= 0 {
		f.Limit = 100
	}
	var entries []box.AuditEntry
	err := s.read("audit", func(q *session) error {
		return q.query(ctx, "audit", func(r Rows) error {
			var e box.AuditEntry
			defer func() { entries = append(entries, e) }()
			return r.Scan((*intCell)(&e.Entry), (*timeCell)(&e.At), (*textCell)(&e.Actor), (*textCell)(&e.Action), (*textCell)(&e.Reason),
				(*textCell)(&e.Key.Consumer), (*textCell)(&e.Key.Source), (*textCell)(&e.Key.ID), (*textCell)(&e.Detail))
		}, f.Consumer, f.Before, int64(f.Limit))
	})
	return entries, err
}

package memstore

import (
	"context"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// Move changes messages without a lease.
func (s *Store) Move(ctx context.Context, moves []box.Move) ([]box.MoveResult, error) {
	results := make([]box.MoveResult, len(moves))
	err := s.write(ctx, nil, func(now time.Time) {
		vacated := vacancy{}
		for i := range moves {
			results[i] = s.move(&moves[i], now, vacated)
		}
		s.fillAll(vacated)
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

func (s *Store) move(m *box.Move, now time.Time, vacated vacancy) box.MoveResult {
	seq, standing := s.standing(m.Key)
	res, c := m.Decide(standing, now)
	s.apply(seq, &c)
	vacated.note(&c)
	if m.Actor != "" && res.Err == nil && res.Changed {
		s.note(box.AuditEntry{At: now, Actor: m.Actor, Reason: m.Reason, Action: m.Action.String(), Key: m.Key})
	}
	return res
}

func (s *Store) standing(key postroom.Key) (int64, box.Standing) {
	seq, ok := s.keys.get(key)
	if !ok {
		return 0, box.Standing{}
	}
	row, _ := s.messages.get(seq)
	standing := box.Standing{Topic: row.topic, Group: row.group, Revision: row.revision}
	if w, ok := s.work.get(seq); ok {
		standing.Work = &w
	}
	if d, ok := s.done.get(seq); ok {
		standing.Done = &d
	}
	head, ok := s.lanes.get(lane{key.Consumer, row.group})
	standing.Head = ok && head == seq
	return seq, standing
}

// note adds an entry to the audit.
func (s *Store) note(e box.AuditEntry) {
	s.entry++
	e.Entry = s.entry
	s.audit.put(e.Entry, e)
}

package memstore

import (
	"cmp"
	"slices"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// A vacancy collects the consumers with lanes whose heads left, to be filled when
// the change that vacated them is committed: the next of a group is then ready
// at once.
type vacancy map[string]bool

func (v vacancy) note(c *box.Change) {
	if c.Vacate && c.Work.Group != "" {
		v[c.Work.Consumer] = true
	}
}

func (s *Store) fillAll(v vacancy) {
	for consumer := range v {
		s.fill(consumer)
	}
}

// vacate takes the head out of a lane, if it is this message.
func (s *Store) vacate(l lane, seq int64) {
	if head, ok := s.lanes.get(l); ok && head == seq {
		s.lanes.put(l, 0)
	}
}

// promote moves what fell due, in the order in which it did: a grouped message
// arrives, unless it is a head, and any other is ready.
func (s *Store) promote(consumer string, now time.Time) {
	var due []box.Work
	for _, w := range s.work.rows {
		if w.Consumer == consumer && w.FellDue(now) {
			due = append(due, w)
		}
	}
	slices.SortFunc(due, func(a, b box.Work) int {
		return cmp.Or(a.Next().Compare(b.Next()), cmp.Compare(a.Seq, b.Seq))
	})
	for _, w := range due {
		c := w.Promote()
		s.apply(w.Seq, &c)
	}
}

// unpark lets the parked messages go on whose topic is not paused: their worker
// may have parked them with stale knowledge.
func (s *Store) unpark(consumer string) {
	var parked []box.Work
	for _, w := range s.work.rows {
		if w.Consumer != consumer || w.Stage != postroom.StageParked {
			continue
		}
		if _, paused := s.paused.get(topic{consumer, w.Topic}); !paused {
			parked = append(parked, w)
		}
	}
	slices.SortFunc(parked, func(a, b box.Work) int { return cmp.Compare(a.ReadyPosition, b.ReadyPosition) })
	for _, w := range parked {
		c := w.Promote()
		s.apply(w.Seq, &c)
	}
}

// sort puts the arrivals of groups into their lanes.
func (s *Store) sort(consumer string) {
	for seq, w := range s.work.rows {
		if w.Consumer != consumer || w.Stage != postroom.StageArrived {
			continue
		}
		w.Stage = postroom.StageQueued
		s.work.put(seq, w)
		l := lane{consumer, w.Group}
		if _, ok := s.lanes.get(l); !ok {
			s.lanes.put(l, 0)
		}
	}
}

// fill gives each vacant lane its lowest queued message as the head, and
// removes the lane when there is none.
func (s *Store) fill(consumer string) {
	vacant := map[lane]*box.Work{}
	for l, head := range s.lanes.rows {
		if head == 0 && l.consumer == consumer {
			vacant[l] = nil
		}
	}
	if len(vacant) == 0 {
		return
	}
	for _, w := range s.work.rows {
		if w.Stage != postroom.StageQueued {
			continue
		}
		l := lane{w.Consumer, w.Group}
		if first, ok := vacant[l]; ok && (first == nil || w.Position < first.Position) {
			vacant[l] = &w
		}
	}
	var heads []*box.Work
	for l, w := range vacant {
		if w == nil {
			s.lanes.delete(l)
		} else {
			heads = append(heads, w)
		}
	}
	slices.SortFunc(heads, func(a, b *box.Work) int { return cmp.Compare(a.Position, b.Position) })
	for _, w := range heads {
		c := w.Promote()
		s.apply(w.Seq, &c)
		s.lanes.put(lane{w.Consumer, w.Group}, w.Seq)
	}
}

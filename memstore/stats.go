package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// Count adds to the running totals.
func (s *Store) Count(ctx context.Context, counts []box.Count) error {
	return s.write(ctx, nil, func(time.Time) {
		for _, c := range counts {
			k := total{c.Consumer, c.Topic, c.Name}
			n, _ := s.totals.get(k)
			s.totals.put(k, n+c.N)
		}
	})
}

// Stats gives the overview of one consumer, or of all. Tables are counted in
// rows only; what they take in memory is not known.
func (s *Store) Stats(ctx context.Context, consumer string) (*box.Stats, error) {
	stats := &box.Stats{}
	err := s.read(ctx, func() error {
		stats.Now = s.now()
		s.live(stats, consumer)
		for k, n := range s.totals.all() {
			if consumer == "" || consumer == k.consumer {
				stats.Totals = append(stats.Totals, box.Count{Consumer: k.consumer, Topic: k.topic, Name: k.name, N: n})
			}
		}
		stats.Tables = []box.TableSize{
			{Table: "message", Rows: size(&s.messages)},
			{Table: "work", Rows: size(&s.work)},
			{Table: "done", Rows: size(&s.done)},
			{Table: "lane", Rows: size(&s.lanes)},
			{Table: "audit", Rows: size(&s.audit)},
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(stats.Totals, func(a, b box.Count) int {
		return cmp.Or(cmp.Compare(a.Consumer, b.Consumer), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(stats.Live, func(a, b box.LiveCount) int {
		return cmp.Or(cmp.Compare(a.Consumer, b.Consumer), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Stage, b.Stage))
	})
	return stats, nil
}

// live counts the live messages and finds the ready one that has waited longest.
func (s *Store) live(stats *box.Stats, consumer string) {
	type kind struct {
		topic
		stage postroom.Stage
	}
	counts := map[kind]int64{}
	var oldest box.Work
	for _, w := range s.work.all() {
		if consumer != "" && consumer != w.Consumer {
			continue
		}
		counts[kind{topic{w.Consumer, w.Topic}, w.Stage}]++
		if w.Stage == postroom.StageReady && (oldest.Seq == 0 || w.ReadyPosition < oldest.ReadyPosition) {
			oldest = w
		}
	}
	if row, ok := s.messages.committed(oldest.Seq); ok {
		stats.OldestWaiting = row.firstSeen
	}
	for k, n := range counts {
		stats.Live = append(stats.Live, box.LiveCount{Consumer: k.consumer, Topic: k.topic.topic, Stage: k.stage, N: n})
	}
}

func size[K comparable, V any](t *table[K, V]) int64 {
	var n int64
	for range t.all() {
		n++
	}
	return n
}

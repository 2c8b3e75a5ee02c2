package sqlstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/postroom/postroom/box"
)

// Count adds to the running totals. See box.Counter.
func (s *Store) Count(ctx context.Context, counts []box.Count) error {
	sum := map[box.Count]int64{}
	for _, c := range counts {
		n := c.N
		c.N = 0
		sum[c] += n
	}
	rows := make([][]any, 0, len(sum))
	for c, n := range sum {
		rows = append(rows, []any{c.Consumer, c.Topic, c.Name, n})
	}
	slices.SortFunc(rows, func(a, b []any) int {
		return cmp.Or(cmp.Compare(a[0].(string), b[0].(string)), cmp.Compare(a[1].(string), b[1].(string)), cmp.Compare(a[2].(string), b[2].(string)))
	})
	return s.write(ctx, "count", func(q *session) error { return q.each(ctx, "count", rows, nil) })
}

// Stats gives an overview. It reads live rows, running totals and the database's
// own estimates, never the history. See box.Counter.
func (s *Store) Stats(ctx context.Context, consumer string) (*box.Stats, error) {
	var st box.Stats
	err := s.read("stats", func(q *session) error {
		var err error
		if st.Now, err = q.clock(ctx); err != nil {
			return err
		}
		err = q.query(ctx, "live_counts", func(r Rows) error {
			var c box.LiveCount
			defer func() { st.Live = append(st.Live, c) }()
			return r.Scan((*textCell)(&c.Consumer), (*textCell)(&c.Topic), (*stageCell)(&c.Stage), (*intCell)(&c.N))
		}, consumer)
		if err != nil {
			return err
		}
		err = q.query(ctx, "totals", func(r Rows) error {
			var c box.Count
			defer func() { st.Totals = append(st.Totals, c) }()
			return r.Scan((*textCell)(&c.Consumer), (*textCell)(&c.Topic), (*textCell)(&c.Name), (*intCell)(&c.N))
		}, consumer)
		if err != nil {
			return err
		}
		err = q.query(ctx, "oldest_waiting", func(r Rows) error { return r.Scan((*timeCell)(&st.OldestWaiting)) }, consumer)
		if err != nil {
			return err
		}
		return q.query(ctx, "table_sizes", func(r Rows) error {
			var t box.TableSize
			defer func() { st.Tables = append(st.Tables, t) }()
			return r.Scan((*textCell)(&t.Table), (*intCell)(&t.Rows), (*intCell)(&t.Bytes), (*boolCell)(&t.Estimated))
		})
	})
	if err != nil {
		return nil, err
	}
	return &st, nil
}

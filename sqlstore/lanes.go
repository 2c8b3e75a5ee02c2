package sqlstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/postroom/postroom"
)

const (
	// lanesAtOnce bounds a pass over groups, so that it stays short.
	lanesAtOnce = 200
	// arrivalsAtOnce bounds what one pass sorts into one lane.
	arrivalsAtOnce = 100
)

// laneEntry is a message in a group.
type laneEntry struct {
	group    string
	seq      int64
	position int64
}

// sortLanes sorts what arrived into its lanes. The lane's lock comes in a
// statement before the one that reads the arrivals, so that this one sees all
// that is committed; it stops at an arrival that someone has locked, and never
// passes it by.
func (s *Store) sortLanes(ctx context.Context, consumer string) error {
	var groups []string
	err := s.read("sort groups", func(q *session) (err error) {
		groups, err = q.groups(ctx, "arrived_groups", consumer, int64(lanesAtOnce))
		return err
	})
	if err != nil || len(groups) == 0 {
		return err
	}
	err = s.write(ctx, "sort groups", func(q *session) error {
		if q.has("brief_waits") {
			if err := q.exec(ctx, "brief_waits"); err != nil {
				return err
			}
		}
		if err := q.each(ctx, "insert_lanes", laneRows(consumer, groups), nil); err != nil {
			return err
		}
		var obtained []string
		err := q.each(ctx, "lock_lanes", laneRows(consumer, groups), func(r Rows) error {
			var group string
			defer func() { obtained = append(obtained, group) }()
			return r.Scan((*textCell)(&group))
		})
		if err != nil {
			return err
		}
		return q.sort(ctx, consumer, obtained)
	})
	if s.dialect.Classify(err) == Busy && !s.dialect.SingleWriter {
		return nil // another one is about to make or to remove the same lane
	}
	return err
}

// sort makes arrivals of locked lanes queued, up to the first that is locked.
func (q *session) sort(ctx context.Context, consumer string, groups []string) error {
	arrivals, err := q.entries(ctx, "arrivals", laneRows(consumer, groups), int64(arrivalsAtOnce))
	if err != nil {
		return err
	}
	free, err := q.lockable(ctx, arrivals, postroom.StageArrived)
	if err != nil {
		return err
	}
	var (
		queued []int64
		hints  [][]any
		stuck  = map[string]bool{}
		first  = map[string]bool{}
	)
	for _, a := range arrivals {
		if !free(a) {
			stuck[a.group] = true
		}
		if stuck[a.group] {
			continue
		}
		queued = append(queued, a.seq)
		if !first[a.group] {
			first[a.group] = true
			hints = append(hints, []any{consumer, a.group, a.position})
		}
	}
	slices.Sort(queued)
	if err := q.each(ctx, "enqueue", seqRows(queued), nil); err != nil {
		return err
	}
	return q.each(ctx, "lower_hint", hints, nil)
}

// lockable locks the work rows of entries, and tells which of them it could and
// still are what was read: all, where one transaction writes at a time.
func (q *session) lockable(ctx context.Context, entries []laneEntry, stage postroom.Stage) (func(laneEntry) bool, error) {
	if q.store.dialect.SingleWriter {
		return func(laneEntry) bool { return true }, nil
	}
	locked, err := q.lockWork(ctx, seqsOf(entries))
	return func(e laneEntry) bool {
		l := locked[e.seq]
		return l != nil && l.Stage == stage && l.Group == e.group
	}, err
}

// fillLanes gives each vacant lane its next head.
func (s *Store) fillLanes(ctx context.Context, consumer string) error {
	for {
		var n int
		err := s.write(ctx, "fill lanes", func(q *session) (err error) {
			n, err = q.fill(ctx, consumer)
			return err
		})
		if err != nil || n < lanesAtOnce {
			return err
		}
	}
}

// fill takes the lowest queued message of each vacant lane. A lane whose lowest
// is locked stays vacant; one that has none is deleted, after a look without the
// hint of where its last head was. It gives how many lanes it moved on.
func (q *session) fill(ctx context.Context, consumer string) (int, error) {
	heads, rest, err := q.nextHeads(ctx, consumer)
	if err != nil {
		return 0, err
	}
	for i := range rest {
		rest[i].position = 0
	}
	more, empty, err := q.lowest(ctx, consumer, rest)
	if err != nil {
		return 0, err
	}
	heads = append(heads, more...)
	slices.SortFunc(heads, func(a, b laneEntry) int { return cmp.Compare(a.position, b.position) })
	moved, err := q.enthrone(ctx, consumer, heads)
	if err != nil {
		return 0, err
	}
	gone := make([]string, len(empty))
	for i, l := range empty {
		gone[i] = l.group
	}
	return moved + len(gone), q.each(ctx, "delete_lanes", laneRows(consumer, gone), nil)
}

// nextHeads locks vacant lanes, and finds the lowest queued message of each behind
// its last head, and the lanes without one. Where one transaction writes at a time
// that is one statement: no lock comes too late for what it reads.
func (q *session) nextHeads(ctx context.Context, consumer string) (heads, without []laneEntry, err error) {
	if !q.has("next_heads") {
		var vacant []laneEntry
		err := q.query(ctx, "vacant_lanes", func(r Rows) error {
			var l laneEntry
			defer func() { vacant = append(vacant, l) }()
			return r.Scan((*textCell)(&l.group), (*intCell)(&l.position))
		}, consumer, int64(lanesAtOnce))
		if err != nil {
			return nil, nil, err
		}
		return q.lowest(ctx, consumer, vacant)
	}
	err = q.query(ctx, "next_heads", func(r Rows) error {
		var l laneEntry
		if err := r.Scan((*textCell)(&l.group), (*intCell)(&l.seq), (*intCell)(&l.position)); err != nil {
			return err
		}
		if l.seq == 0 {
			without = append(without, l)
		} else {
			heads = append(heads, l)
		}
		return nil
	}, consumer, int64(lanesAtOnce))
	return heads, without, err
}

// lowest finds the lowest queued message of lanes, and the lanes without one.
func (q *session) lowest(ctx context.Context, consumer string, lanes []laneEntry) (lowest, without []laneEntry, err error) {
	rows := make([][]any, len(lanes))
	for i, l := range lanes {
		rows[i] = []any{consumer, l.group, l.position}
	}
	lowest, err = q.entries(ctx, "lowest_queued", rows)
	has := map[string]bool{}
	for _, l := range lowest {
		has[l.group] = true
	}
	for _, l := range lanes {
		if !has[l.group] {
			without = append(without, l)
		}
	}
	return lowest, without, err
}

// enthrone makes messages the heads of their lanes, where they can be locked.
func (q *session) enthrone(ctx context.Context, consumer string, heads []laneEntry) (int, error) {
	free, err := q.lockable(ctx, heads, postroom.StageQueued)
	if err != nil {
		return 0, err
	}
	heads = slices.DeleteFunc(heads, func(h laneEntry) bool { return !free(h) })
	seqs := make([]int64, len(heads))
	for i, h := range heads {
		seqs[i] = h.seq
	}
	if err := q.numbered(ctx, "ready", seqs); err != nil {
		return 0, err
	}
	if q.has("set_heads_by_number") {
		return len(heads), q.each(ctx, "set_heads_by_number", seqRows(seqs), nil)
	}
	lanes := make([][]any, len(heads))
	for i, h := range heads {
		lanes[i] = []any{consumer, h.group, h.seq, h.position}
	}
	return len(heads), q.each(ctx, "set_heads", lanes, nil)
}

func (q *session) entries(ctx context.Context, name string, rows [][]any, more ...any) ([]laneEntry, error) {
	var entries []laneEntry
	err := q.each(ctx, name, rows, func(r Rows) error {
		var e laneEntry
		defer func() { entries = append(entries, e) }()
		return r.Scan((*textCell)(&e.group), (*intCell)(&e.seq), (*intCell)(&e.position))
	}, more...)
	return entries, err
}

func (q *session) groups(ctx context.Context, name string, args ...any) ([]string, error) {
	var groups []string
	err := q.query(ctx, name, func(r Rows) error {
		var g string
		defer func() { groups = append(groups, g) }()
		return r.Scan((*textCell)(&g))
	}, args...)
	return groups, err
}

func laneRows(consumer string, groups []string) [][]any {
	rows := make([][]any, len(groups))
	for i, g := range groups {
		rows[i] = []any{consumer, g}
	}
	return rows
}

// seqsOf gives the numbers in ascending order, the order of locks.
func seqsOf(entries []laneEntry) []int64 {
	seqs := make([]int64, len(entries))
	for i, e := range entries {
		seqs[i] = e.seq
	}
	slices.Sort(seqs)
	return seqs
}

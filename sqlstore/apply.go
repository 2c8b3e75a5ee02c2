package sqlstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/postroom/postroom/box"
)

// A write is a change together with the Put whose content it brings, if any, and
// that one's place in its batch.
type write struct {
	box.Change
	put   *box.Put
	order int
}

// inOrder lets positions follow the order of a batch: a new message takes its
// position anew when a known one before it does, or one before it was numbered
// later.
func inOrder(writes []write) []write {
	slices.SortFunc(writes, func(a, b write) int { return cmp.Compare(a.order, b.order) })
	var last int64
	anew := false
	for i := range writes {
		w := &writes[i].Work
		switch {
		case writes[i].Fate != box.Insert:
			anew = anew || w.Position == box.NewPosition || w.ReadyPosition == box.NewPosition
		case anew || w.Seq < last:
			anew = true
			w.Position, w.ReadyPosition = box.NewPosition, box.NewPosition
		default:
			last = w.Seq
		}
	}
	return writes
}

// apply writes what the rules decided. The caller holds the locks. New positions
// are taken in the order of the writes. It gives the consumers whose lanes were
// vacated.
func (q *session) apply(ctx context.Context, writes []write) (map[string]bool, error) {
	if err := q.number(ctx, writes); err != nil {
		return nil, err
	}
	slices.SortFunc(writes, func(a, b write) int { return cmp.Compare(a.Work.Seq, b.Work.Seq) })
	var contents, hashes, inserts, updates, dones [][]any
	var deleteWork, deleteDone, deleteMessage []int64
	for i := range writes {
		w := &writes[i]
		if w.Content {
			m := &w.put.Message
			row := []any{w.Work.Seq, int64(w.Work.Revision), w.Regroup, m.Group}
			contents = append(contents, append(row, contentValues(m, w.put.Digest())...))
		} else if w.AdoptHash {
			hashes = append(hashes, []any{w.Work.Seq, bytesValue(w.put.Message.Hash), w.put.Message.HashAlg})
		}
		switch w.Fate {
		case box.Insert:
			inserts = append(inserts, workValues(&w.Work))
		case box.InsertDone:
			dones = append(dones, doneValues(&w.Done))
		case box.Update:
			updates = append(updates, workValues(&w.Work))
		case box.ToDone:
			deleteWork = append(deleteWork, w.Work.Seq)
			dones = append(dones, doneValues(&w.Done))
		case box.Forget:
			deleteWork = append(deleteWork, w.Work.Seq)
			deleteMessage = append(deleteMessage, w.Work.Seq)
		case box.Reopen:
			deleteDone = append(deleteDone, w.Work.Seq)
			inserts = append(inserts, workValues(&w.Work))
		}
	}
	for _, step := range []struct {
		name string
		rows [][]any
	}{
		{"update_content", contents},
		{"adopt_hash", hashes},
		{"delete_done", seqRows(deleteDone)},
		{"delete_work", seqRows(deleteWork)},
		{"delete_message", seqRows(deleteMessage)},
		{"insert_work", inserts},
		{"update_work", updates},
		{"insert_done", dones},
	} {
		if err := q.each(ctx, step.name, step.rows, nil); err != nil {
			return nil, err
		}
	}
	return q.vacate(ctx, writes)
}

// number replaces each NewPosition by the next number of the sequence.
func (q *session) number(ctx context.Context, writes []write) error {
	var wanted []*int64
	for i := range writes {
		w := &writes[i].Work
		if w.Position == box.NewPosition {
			wanted = append(wanted, &w.Position)
		}
		if w.ReadyPosition == box.NewPosition {
			wanted = append(wanted, &w.ReadyPosition)
		}
	}
	numbers, err := q.positions(ctx, len(wanted))
	for i, n := range numbers {
		*wanted[i] = n
	}
	return err
}

// positions takes n numbers from the sequence. A dialect gives either each of
// them or the first of n that follow one another.
func (q *session) positions(ctx context.Context, n int) ([]int64, error) {
	if n == 0 {
		return nil, nil
	}
	if span := q.store.dialect.Span; span > 0 {
		return q.ticketed(ctx, n, span)
	}
	var numbers []int64
	err := q.query(ctx, "positions", func(r Rows) error {
		var number int64
		defer func() { numbers = append(numbers, number) }()
		return r.Scan((*intCell)(&number))
	}, int64(n))
	slices.Sort(numbers) // they need not come in their order
	for err == nil && len(numbers) < n {
		numbers = append(numbers, numbers[len(numbers)-1]+1)
	}
	return numbers, err
}

// ticketed takes numbers where the database can count only by inserting a row:
// each row stands for a span of numbers, and is taken away again at once.
func (q *session) ticketed(ctx context.Context, n, span int) ([]int64, error) {
	numbers := make([]int64, 0, n)
	for len(numbers) < n {
		if err := q.exec(ctx, "ticket"); err != nil {
			return nil, err
		}
		var first int64
		if err := q.query(ctx, "positions", func(r Rows) error { return r.Scan((*intCell)(&first)) }, int64(span)); err != nil {
			return nil, err
		}
		if err := q.exec(ctx, "tear_ticket"); err != nil {
			return nil, err
		}
		for i := range min(span, n-len(numbers)) {
			numbers = append(numbers, first+int64(i))
		}
	}
	return numbers, nil
}

// vacate takes heads out of their lanes, in the order of the lanes.
func (q *session) vacate(ctx context.Context, writes []write) (map[string]bool, error) {
	var lanes [][]any
	consumers := map[string]bool{}
	for i := range writes {
		if w := &writes[i].Work; writes[i].Vacate && w.Group != "" {
			lanes = append(lanes, []any{w.Consumer, w.Group, w.Seq})
			consumers[w.Consumer] = true
		}
	}
	slices.SortFunc(lanes, func(a, b []any) int {
		return cmp.Or(cmp.Compare(a[0].(string), b[0].(string)), cmp.Compare(a[1].(string), b[1].(string)))
	})
	return consumers, q.each(ctx, "vacate_lanes", lanes, nil)
}

package sqlstore

import (
	"context"
	"slices"
)

// spanWorth is how many numbers a span must have on average: a statement for each
// span then costs less than to look up each number of a list.
const spanWorth = 8

// A part is some numbers of messages, as a statement takes them: a list, or where
// span is set the first and the last of a span without a gap.
type part struct {
	span bool
	args []any
}

// parts gives numbers as spans if they are few, else as a list. It sorts them.
func (q *session) parts(seqs []int64) []part {
	if len(seqs) == 0 {
		return nil
	}
	slices.Sort(seqs)
	var spans []part
	first := 0
	for i := range seqs {
		if i+1 < len(seqs) && seqs[i+1] == seqs[i]+1 {
			continue
		}
		spans = append(spans, part{true, []any{seqs[first], seqs[i]}})
		first = i + 1
		if len(spans)*spanWorth > len(seqs)+spanWorth-1 {
			return []part{{false, q.store.dialect.Batch(seqRows(seqs))}}
		}
	}
	return spans
}

// byNumber runs a statement over parts. There is one more for spans.
func (q *session) byNumber(ctx context.Context, name string, parts []part, more ...any) error {
	for _, p := range parts {
		text := name
		if p.span {
			text += "_span"
		}
		if err := q.execFilled(ctx, text, append(slices.Clone(p.args), q.values(more)...)); err != nil {
			return err
		}
	}
	return nil
}

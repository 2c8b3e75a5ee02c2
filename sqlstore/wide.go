package sqlstore

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// Where each statement costs more than what it does to a row, messages are
// inserted many at a time. One transaction writes at a time there: the numbers
// of a batch are a span, and what is in that span afterwards was new.

// insertWide is insert by such statements. Taking numbers takes the writer's lock,
// which may take a while: times are read after it.
func (q *session) insertWide(ctx context.Context, round []intake, byKey map[postroom.Key]intake) ([]write, error) {
	numbers, err := q.positions(ctx, len(round))
	if err != nil {
		return nil, err
	}
	now, err := q.clock(ctx)
	if err != nil {
		return nil, err
	}
	if err := q.storeWide(ctx, round, numbers, now); err != nil {
		return nil, err
	}
	span := []any{numbers[0], numbers[len(numbers)-1]}
	stored := 0
	if err := q.query(ctx, "stored", func(r Rows) error { return r.Scan((*countCell)(&stored)) }, span...); err != nil {
		return nil, err
	}
	if stored < len(round) {
		if round, numbers, err = q.stored(ctx, round, numbers, span); err != nil {
			return nil, err
		}
	}
	if q.fresh == nil {
		q.fresh = make(map[int64]bool, len(round))
	}
	writes := make([]write, len(round))
	for i, in := range round {
		delete(byKey, in.put.Message.Key())
		q.fresh[numbers[i]] = true
		writes[i].put, writes[i].order = in.put, in.order
		*in.result, writes[i].Change = in.put.Arrive(numbers[i], now)
	}
	return writes, nil
}

// queueWide writes the work rows of new messages that are only to be queued, if
// they come in no order with what was known, and gives what is left to write.
func (q *session) queueWide(ctx context.Context, fresh, known []write) ([]write, error) {
	if len(fresh) == 0 || len(known) > 0 || !q.has("insert_work_span") {
		return fresh, nil
	}
	for i := range fresh {
		p := fresh[i].put
		if p.Mode != box.Queue || p.Dead != "" {
			return fresh, nil
		}
	}
	return nil, q.exec(ctx, "insert_work_span", fresh[0].Work.Seq, fresh[len(fresh)-1].Work.Seq)
}

// storeWide inserts the messages that are new.
func (q *session) storeWide(ctx context.Context, round []intake, numbers []int64, now time.Time) error {
	var args []any
	for len(round) > 0 {
		width := widest(q.store.dialect.Widths, len(round))
		args = args[:0]
		for i, in := range round[:width] {
			args = append(args, timeValue(now), numbers[i])
			args = append(args, messageValues(storedMessage(in.put), in.put.Digest())...)
		}
		if err := q.exec(ctx, "insert_messages_"+strconv.Itoa(width), args...); err != nil {
			return err
		}
		round, numbers = round[width:], numbers[width:]
	}
	return nil
}

// widest is the widest that is not wider than n.
func widest(widths []int, n int) int {
	return widths[slices.IndexFunc(widths, func(w int) bool { return w <= n })]
}

// stored gives those whose numbers were used.
func (q *session) stored(ctx context.Context, round []intake, numbers []int64, span []any) (fresh []intake, used []int64, err error) {
	err = q.query(ctx, "stored_numbers", func(r Rows) error {
		var n int64
		if err := r.Scan((*intCell)(&n)); err != nil {
			return err
		}
		fresh, used = append(fresh, round[n-numbers[0]]), append(used, n)
		return nil
	}, span...)
	return fresh, used, err
}

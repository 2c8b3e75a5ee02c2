package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A session runs named statements on one connection or transaction.
type session struct {
	store *Store
	conn  Conn
	// caller: the transaction belongs to the caller.
	caller bool
	// snapshot: plain reads may give what was, not what is.
	snapshot bool
	// fresh are the messages that were inserted in this session.
	fresh map[int64]bool
}

// has reports whether the dialect has a statement. Some statements do in one
// step what other dialects need two for; the second is then absent.
func (q *session) has(name string) bool {
	_, ok := q.store.statements[name]
	return ok
}

// single reports whether a whole operation can be done by one statement.
func (q *session) single(name string) bool { return q.has(name) && !q.store.stepwise.Load() }

func (q *session) text(name string) string {
	text, ok := q.store.statements[name]
	if !ok {
		panic("sqlstore: dialect " + q.store.dialect.Name + " lacks statement " + name)
	}
	return text
}

func (q *session) values(args []any) []any {
	if q.store.dialect.Value == nil {
		return args
	}
	out := make([]any, len(args))
	for i, a := range args {
		out[i] = q.store.dialect.Value(a)
	}
	return out
}

// filled is a statement with what is to be passed besides.
func (q *session) filled(name string, args []any) (string, []any) {
	if fill := q.store.dialect.Fill; fill != nil {
		return fill(q.text(name), args), nil
	}
	return q.text(name), args
}

func (q *session) exec(ctx context.Context, name string, args ...any) error {
	return q.execFilled(ctx, name, q.values(args))
}

func (q *session) execFilled(ctx context.Context, name string, args []any) error {
	text, args := q.filled(name, args)
	if err := q.conn.Exec(ctx, text, args...); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// query runs a statement and calls scan for each row.
func (q *session) query(ctx context.Context, name string, scan func(Rows) error, args ...any) error {
	text, args := q.filled(name, q.values(args))
	rows, err := q.conn.Query(ctx, text, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for rows.Next() {
		if err := scan(rows); err != nil {
			return errors.Join(fmt.Errorf("%s: read row: %w", name, err), rows.Close())
		}
	}
	if err := rows.Err(); err != nil {
		_ = rows.Close()
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := rows.Close(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// each runs a statement over rows of values: once for all of them where the
// dialect has batches, else once for each. Without rows it does nothing. more
// are further arguments, the same for every row.
func (q *session) each(ctx context.Context, name string, rows [][]any, scan func(Rows) error, more ...any) error {
	if len(rows) == 0 {
		return nil
	}
	run := func(args []any) error {
		if scan == nil {
			return q.execFilled(ctx, name, args)
		}
		return q.query(ctx, name, scan, args...)
	}
	if batch := q.store.dialect.Batch; batch != nil && !q.store.dialect.Singles[name] {
		for len(rows) > 0 {
			n := fitting(rows, q.store.dialect.BatchBytes)
			if err := run(append(batch(rows[:n]), q.values(more)...)); err != nil {
				return err
			}
			rows = rows[n:]
		}
		return nil
	}
	for _, row := range rows {
		if err := run(append(q.values(row), q.values(more)...)); err != nil {
			return err
		}
	}
	return nil
}

// fitting is how many of the rows go into one statement, at least one.
func fitting(rows [][]any, bound int) int {
	if bound == 0 {
		return len(rows)
	}
	size := 0
	for n, row := range rows {
		for _, v := range row {
			switch v := v.(type) {
			case string:
				size += len(v)
			case []byte:
				size += len(v)
			}
			size += 8
		}
		if size > bound && n > 0 {
			return n
		}
	}
	return len(rows)
}

// accept asks the server once what it is, and refuses what can't be used.
func (q *session) accept(ctx context.Context) error {
	s := q.store
	if s.dialect.Refuse == nil || s.accepted.Load() {
		return nil
	}
	var version string
	if err := q.query(ctx, "server", func(r Rows) error { return r.Scan((*textCell)(&version)) }); err != nil {
		return err
	}
	if err := s.dialect.Refuse(version); err != nil {
		return err
	}
	s.accepted.Store(true)
	return nil
}

// clock reads the database's clock.
func (q *session) clock(ctx context.Context) (now time.Time, err error) {
	err = q.query(ctx, "clock", func(r Rows) error { return r.Scan((*timeCell)(&now)) })
	return now, err
}

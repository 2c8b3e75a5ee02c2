package pgxstore

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// arrays turns rows into one array per column, which pgx sends in binary. A
// column of nothing but NULL is an empty array, which the others pad.
func arrays(rows [][]any) []any {
	if len(rows) == 0 {
		return nil
	}
	columns := make([]any, len(rows[0]))
	for c := range columns {
		switch first := sample(rows, c).(type) {
		case nil:
			columns[c] = empty{}
		case int64, string, bool, time.Time, []byte:
			columns[c] = &column{rows, c, first}
		default:
			panic(fmt.Sprintf("pgxstore: no array of %T", first))
		}
	}
	return columns
}

// sample gives the first value of a column that is not NULL.
func sample(rows [][]any, c int) any {
	for r := range rows {
		if rows[r][c] != nil {
			return rows[r][c]
		}
	}
	return nil
}

// A column lets pgx read an array out of the rows: a slice of its own would have
// to be made, and each of its values be boxed once more.
type column struct {
	rows [][]any
	c    int
	kind any
}

var _ pgtype.ArrayGetter = (*column)(nil)

// Dimensions: see pgtype.ArrayGetter.
func (a *column) Dimensions() []pgtype.ArrayDimension {
	return []pgtype.ArrayDimension{{Length: int32(len(a.rows)), LowerBound: 1}} //nolint:gosec // a batch in memory is not that large
}

// Index gives a value of the column.
func (a *column) Index(i int) any { return a.rows[i][a.c] }

// IndexType gives a value of the column's type.
func (a *column) IndexType() any { return a.kind }

// Format keeps payloads out of errors about an argument.
func (a *column) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "column %d of %d rows", a.c+1, len(a.rows))
}

// empty is an array of any type without elements.
type empty struct{}

var _ pgtype.ArrayGetter = empty{}

// Dimensions: see pgtype.ArrayGetter.
func (empty) Dimensions() []pgtype.ArrayDimension { return []pgtype.ArrayDimension{} }

// Index is never called.
func (empty) Index(int) any { return nil }

// IndexType gives no type: any will do.
func (empty) IndexType() any { return nil }

// plain gives arguments with slices in place of columns, for modes in which pgx
// must know the type of each argument by itself.
func plain(args []any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case *column:
			out[i] = a.slice()
		case empty:
			out[i] = []string{}
		default:
			out[i] = a
		}
	}
	return out
}

func (a *column) slice() any {
	switch a.kind.(type) {
	case int64:
		return values[int64](a)
	case string:
		return values[string](a)
	case bool:
		return values[bool](a)
	case time.Time:
		return values[time.Time](a)
	default:
		bytes := make([][]byte, len(a.rows))
		for i := range bytes {
			bytes[i], _ = a.Index(i).([]byte)
		}
		return bytes
	}
}

// values are pointers, nil for NULL.
func values[T any](a *column) []*T {
	out := make([]*T, len(a.rows))
	for i := range out {
		if v, ok := a.Index(i).(T); ok {
			out[i] = &v
		}
	}
	return out
}

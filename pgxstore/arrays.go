package pgxstore

import (
	"fmt"
	"time"
)

// arrays turns rows into one slice per column, of the type that pgx sends in
// binary. A column of nothing but NULL is an empty array, which the others pad.
func arrays(rows [][]any) []any {
	if len(rows) == 0 {
		return nil
	}
	columns := make([]any, len(rows[0]))
	for c := range columns {
		switch sample(rows, c).(type) {
		case nil:
			columns[c] = []string{}
		case int64:
			columns[c] = column[int64](rows, c)
		case string:
			columns[c] = column[string](rows, c)
		case bool:
			columns[c] = column[bool](rows, c)
		case time.Time:
			columns[c] = column[time.Time](rows, c)
		case []byte:
			bytes := make([][]byte, len(rows))
			for r := range rows {
				bytes[r], _ = rows[r][c].([]byte)
			}
			columns[c] = bytes
		default:
			panic(fmt.Sprintf("pgxstore: no array of %T", sample(rows, c)))
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

// column gives plain values, which pgx encodes fastest, or pointers where some
// are NULL.
func column[T any](rows [][]any, c int) any {
	plain := make([]T, len(rows))
	for r := range rows {
		v, ok := rows[r][c].(T)
		if !ok {
			return pointers[T](rows, c)
		}
		plain[r] = v
	}
	return plain
}

func pointers[T any](rows [][]any, c int) []*T {
	values := make([]*T, len(rows))
	for r := range rows {
		if v, ok := rows[r][c].(T); ok {
			values[r] = &v
		}
	}
	return values
}

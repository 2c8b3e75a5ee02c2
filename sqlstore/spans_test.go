package sqlstore

import (
	"fmt"
	"testing"
)

func TestSpans_name_no_number_that_was_not_given(t *testing.T) {
	q := &session{store: &Store{dialect: &Dialect{Batch: func(rows [][]any) []any { return []any{fmt.Sprint(rows)} }}}}
	run := func(first, last int64) (seqs []int64) {
		for n := first; n <= last; n++ {
			seqs = append(seqs, n)
		}
		return seqs
	}
	for _, c := range []struct {
		name string
		seqs []int64
		want string
	}{
		{"none", nil, "[]"},
		{"one", []int64{7}, "[{true [7 7]}]"},
		{"in any order", []int64{3, 1, 2}, "[{true [1 3]}]"},
		{"a gap among few", []int64{1, 3}, "[{false [[[1] [3]]]}]"},
		{"a gap among many", append(run(1, 8), run(10, 17)...), "[{true [1 8]} {true [10 17]}]"},
		{"one beside many", append(run(1, 8), 10), "[{true [1 8]} {true [10 10]}]"},
	} {
		if got := fmt.Sprint(q.parts(c.seqs)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

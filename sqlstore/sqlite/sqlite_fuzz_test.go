package sqlite_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/sqlite"
)

// coded stands for the errors of a driver that gives its code by method.
type coded struct {
	code int
	text string
}

func (e coded) Error() string { return e.text }
func (e coded) Code() int     { return e.code }

func FuzzErrorsHaveOneClassHoweverWrapped(f *testing.F) {
	for code, text := range map[int]string{
		5: "database is locked (5) (SQLITE_BUSY)", 6: "table is locked", 517: "busy snapshot", 261: "busy recovery",
		1: "no such table: postroom_work", 0: "", -1: "\x00\xff",
	} {
		f.Add(code, text)
	}
	classes := map[int]sqlstore.Class{5: sqlstore.Busy, 6: sqlstore.Busy, 261: sqlstore.Busy, 517: sqlstore.Repeat}
	f.Fuzz(func(t *testing.T, code int, text string) {
		class := sqlite.Classify(coded{code, text})
		if want, ok := classes[code]; ok && class != want {
			t.Errorf("code %d is of class %d, want %d", code, class, want)
		}
		for _, wrapped := range []error{
			fmt.Errorf("claim: %w", coded{code, text}),
			errors.Join(errors.New("also"), fmt.Errorf("%w: %w", errors.New("retry"), coded{code, text})),
		} {
			if got := sqlite.Classify(wrapped); got != class {
				t.Errorf("code %d is of class %d, wrapped %d", code, class, got)
			}
		}
		if sqlite.Classify(errors.New(text)) == sqlstore.Repeat {
			t.Errorf("text %q alone asks for a repetition", text)
		}
	})
}

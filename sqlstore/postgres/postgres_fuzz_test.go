package postgres_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/postgres"
)

// parse reads the elements of a one-dimensional array literal as PostgreSQL does:
// quoted ones with backslash escapes, unquoted ones up to the comma, where NULL
// is nil.
func parse(literal string) ([]*string, error) {
	body, ok := strings.CutPrefix(literal, "{")
	if !ok {
		return nil, errors.New("no opening brace")
	}
	var elements []*string
	for {
		var element strings.Builder
		quoted := strings.HasPrefix(body, `"`)
		i := 0
		if quoted {
			for i = 1; i < len(body) && body[i] != '"'; i++ {
				if body[i] == '\\' {
					i++
				}
				if i >= len(body) {
					return nil, errors.New("no character after a backslash")
				}
				element.WriteByte(body[i])
			}
			i++
		} else {
			for i < len(body) && body[i] != ',' && body[i] != '}' {
				if strings.IndexByte(`{"\ `, body[i]) >= 0 {
					return nil, fmt.Errorf("%q outside of quotes", body[i])
				}
				element.WriteByte(body[i])
				i++
			}
		}
		if i >= len(body) {
			return nil, errors.New("no end")
		}
		text := element.String()
		if !quoted && text == "NULL" {
			elements = append(elements, nil)
		} else {
			elements = append(elements, &text)
		}
		end := body[i]
		body = body[i+1:]
		if end == '}' {
			if body != "" {
				return nil, fmt.Errorf("%q after the end", body)
			}
			return elements, nil
		}
	}
}

func FuzzLiteralsSayWhatTheyWereGiven(f *testing.F) {
	f.Add("plain", `"quoted" \ back`, []byte{0, 1, 255}, int64(-5), true, int64(0))
	f.Add("", "NULL", []byte{}, int64(1<<63-1), false, int64(253402300799999999))
	f.Add("{a,b}", "a,b}", []byte(`\x`), int64(-1<<63), true, int64(1_700_000_000_123_456))
	f.Add("line\nbreak\t ", " leading", []byte("'"), int64(0), false, int64(1))
	f.Fuzz(func(t *testing.T, a, b string, data []byte, n int64, yes bool, micros int64) {
		if !utf8.ValidString(a) || !utf8.ValidString(b) {
			t.Skip("validation refuses it")
		}
		at := time.UnixMicro((micros%253402300800000000 + 253402300800000000) % 253402300800000000)
		columns := postgres.Literals([][]any{{a, data, n, yes, at}, {b, nil, nil, nil, nil}})
		want := [][]string{{a, b}, {`\x` + hex.EncodeToString(data)}, {fmt.Sprint(n)}, {fmt.Sprint(yes)}, nil}
		for c, column := range columns {
			elements, err := parse(column.(string))
			if err != nil || len(elements) != 2 {
				t.Fatalf("%s: %d elements, %v", column, len(elements), err)
			}
			for i := range want[c] {
				if elements[i] == nil || *elements[i] != want[c][i] {
					t.Errorf("%s: element %d is not %q", column, i, want[c][i])
				}
			}
			if c > 0 && elements[1] != nil {
				t.Errorf("%s: nil is %q", column, *elements[1])
			}
		}
		elements, _ := parse(columns[4].(string))
		got, err := time.Parse("2006-01-02 15:04:05.999999Z07:00", *elements[0])
		if err != nil || !got.Equal(at) {
			t.Errorf("%v came back as %v, %v", at, got, err)
		}
	})
}

// coded stands for the errors of pgx and lib/pq, which give their code by method.
type coded struct{ code, text string }

func (e coded) Error() string    { return e.text }
func (e coded) SQLState() string { return e.code }

func FuzzErrorsHaveOneClassHoweverWrapped(f *testing.F) {
	for code, text := range map[string]string{
		"40001": "could not serialize", "40P01": "deadlock", "55P03": "lock not available", "42P01": "no table",
		"57P01": "terminating connection", "08006": "connection failure", "": "bad connection", "\xff": "\x00",
	} {
		f.Add(code, text)
	}
	classes := map[string]sqlstore.Class{
		"40001": sqlstore.Repeat, "40P01": sqlstore.Repeat, "55P03": sqlstore.Busy, "42P01": sqlstore.NoTable,
		"57P01": sqlstore.Lost, "08006": sqlstore.Lost,
	}
	f.Fuzz(func(t *testing.T, code, text string) {
		class := postgres.Classify(coded{code, text})
		if want, ok := classes[code]; ok && class != want {
			t.Errorf("code %s is of class %d, want %d", code, class, want)
		}
		for _, wrapped := range []error{
			fmt.Errorf("claim: %w", coded{code, text}),
			errors.Join(errors.New("also"), fmt.Errorf("%w: %w", errors.New("retry"), coded{code, text})),
		} {
			if got := postgres.Classify(wrapped); got != class {
				t.Errorf("%v is of class %d, wrapped %d", code, class, got)
			}
		}
		if postgres.Classify(errors.New(text)) == sqlstore.Repeat {
			t.Errorf("text %q alone asks for a repetition", text)
		}
		if postgres.Classify(fmt.Errorf("%s: %w", text, io.ErrUnexpectedEOF)) != sqlstore.Lost {
			t.Error("a connection that ends is lost")
		}
	})
}

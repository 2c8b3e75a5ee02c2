package sqlserver

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// A statement takes a place apart as start and length.
func TestTextsAndBytesAreFoundAtTheirPlaces(t *testing.T) {
	now := time.UnixMicro(1_700_000_000_123_456)
	rows := [][]any{
		{int64(7), "order", []byte{0, 0xff}, nil, true, now},
		{int64(-1), "", []byte{}, "é'\"", false, nil},
		{int64(0), strings.Repeat("x", 9000), []byte("y"), "z", false, nil},
	}
	args := document(rows)
	text, blob := string(args[0].(text)), args[1].([]byte)
	var decoded [][]*int64
	if err := json.Unmarshal([]byte(text), &decoded); err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		for j, want := range row {
			got := decoded[i][j]
			if want == nil {
				if got != nil {
					t.Errorf("row %d, %d: %d, want null", i, j, *got)
				}
				continue
			}
			switch want := want.(type) {
			case int64:
				same(t, *got, want)
			case bool:
				same(t, *got == 1, want)
			case time.Time:
				same(t, *got, want.UnixMicro())
			default:
				start, length := *got/100_000_000, *got%100_000_000
				part := blob[start-1 : start-1+length]
				if s, ok := want.(string); ok {
					want = []byte(s)
				}
				if !bytes.Equal(part, want.([]byte)) {
					t.Errorf("row %d, %d: %q, want %q", i, j, part, want)
				}
			}
		}
	}
}

func same[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The server makes a plan for each type of a parameter, and a length below 4,000
// characters or 8,000 bytes is part of it.
func TestParametersHaveFewLengths(t *testing.T) {
	texts, blobs := map[int]bool{}, map[int]bool{}
	for n := range 9000 {
		args := document([][]any{{strings.Repeat("x", n)}})
		blobs[len(args[1].([]byte))] = true
		args = document(make([][]any, n))
		if l := len(args[0].(text)); l <= 4000 {
			texts[l] = true
		}
	}
	for l := range blobs {
		if l > 8000 {
			delete(blobs, l)
		}
	}
	if len(texts) > 6 || len(blobs) > 6 {
		t.Errorf("there are %d and %d", len(texts), len(blobs))
	}
}

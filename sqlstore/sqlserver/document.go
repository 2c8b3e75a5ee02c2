package sqlserver

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// A text is an argument that goes as it is: JSON must not be bytes.
type text string

// document turns rows into one JSON array of arrays of numbers, and the bytes that
// they stand for.
func document(rows [][]any) []any {
	var d doc
	d.json.WriteByte('[')
	for i, row := range rows {
		if i > 0 {
			d.json.WriteByte(',')
		}
		d.json.WriteByte('[')
		for j, v := range row {
			if j > 0 {
				d.json.WriteByte(',')
			}
			d.element(v)
		}
		d.json.WriteByte(']')
	}
	d.json.WriteByte(']')
	length := d.json.Len()
	d.json.WriteString(strings.Repeat(" ", room(length, 4000)-length))
	d.bytes = append(d.bytes, make([]byte, room(len(d.bytes), 8000)-len(d.bytes))...)
	return []any{text(d.json.String()), d.bytes}
}

type doc struct {
	json  strings.Builder
	bytes []byte
}

func (d *doc) element(v any) {
	switch v := v.(type) {
	case nil:
		d.json.WriteString("null")
	case int64:
		d.number(v)
	case bool:
		if v {
			d.number(1)
		} else {
			d.number(0)
		}
	case time.Time:
		d.number(v.UnixMicro())
	case string:
		d.place(len(v))
		d.bytes = append(d.bytes, v...)
	case []byte:
		d.place(len(v))
		d.bytes = append(d.bytes, v...)
	default:
		panic(fmt.Sprintf("sqlserver: no JSON for %T", v))
	}
}

func (d *doc) number(n int64) { d.json.WriteString(strconv.FormatInt(n, 10)) }

// place says where the next bytes are, as the statements take it apart. No
// payload is as long as the number that keeps start and length apart.
func (d *doc) place(length int) { d.number(int64(len(d.bytes)+1)*100_000_000 + int64(length)) }

// room is how long a parameter is made, up to the longest whose length is part of
// its type. The server makes a plan for each type that it meets: so it meets few.
func room(length, longest int) int {
	if length >= longest {
		return length
	}
	return min(max(256, 1<<bits.Len(uint(length))), longest) //nolint:gosec // no length is negative
}

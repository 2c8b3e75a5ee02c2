package sqlserver

import (
	"encoding/hex"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// A text is an argument that goes as it is: JSON must not be bytes.
type text string

// document turns rows into one JSON array of arrays. It is plain ASCII without
// anything to escape.
func document(rows [][]any) []any {
	var b strings.Builder
	b.WriteByte('[')
	for i, row := range rows {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('[')
		for j, v := range row {
			if j > 0 {
				b.WriteByte(',')
			}
			element(&b, v)
		}
		b.WriteByte(']')
	}
	b.WriteByte(']')
	return []any{text(padded(b.String()))}
}

func element(b *strings.Builder, v any) {
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case bool:
		if v {
			b.WriteByte('1')
		} else {
			b.WriteByte('0')
		}
	case time.Time:
		b.WriteString(strconv.FormatInt(v.UnixMicro(), 10))
	case string:
		encode(b, []byte(v))
	case []byte:
		encode(b, v)
	default:
		panic(fmt.Sprintf("sqlserver: no JSON for %T", v))
	}
}

func encode(b *strings.Builder, v []byte) {
	b.WriteByte('"')
	e := hex.NewEncoder(b)
	_, _ = e.Write(v) // to memory
	b.WriteByte('"')
}

// longest is what a text can have whose length is part of its type.
const longest = 4000

// padded fills a short document up with blanks. The server makes a plan for each
// length of a parameter that it meets: so it meets few.
func padded(s string) string {
	if len(s) >= longest {
		return s
	}
	size := min(max(256, 1<<bits.Len(uint(len(s)-1))), longest)
	return s + strings.Repeat(" ", size-len(s))
}

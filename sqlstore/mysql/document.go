package mysql

import (
	"encoding/base64"
	"fmt"
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
	return []any{text(b.String())}
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
		panic(fmt.Sprintf("mysql: no JSON for %T", v))
	}
}

func encode(b *strings.Builder, v []byte) {
	b.WriteByte('"')
	e := base64.NewEncoder(base64.StdEncoding, b)
	_, _ = e.Write(v) // to memory
	_ = e.Close()
	b.WriteByte('"')
}

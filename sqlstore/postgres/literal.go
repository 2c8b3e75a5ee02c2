package postgres

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Literals turns rows into one array literal per column, which every driver can
// pass as text. A column of nothing but NULL is an empty array, which the others
// pad.
func Literals(rows [][]any) []any {
	if len(rows) == 0 {
		return nil
	}
	columns := make([]any, len(rows[0]))
	for c := range columns {
		empty := null(rows, c)
		var b strings.Builder
		b.WriteByte('{')
		for r := 0; r < len(rows) && !empty; r++ {
			if r > 0 {
				b.WriteByte(',')
			}
			element(&b, rows[r][c])
		}
		b.WriteByte('}')
		columns[c] = b.String()
	}
	return columns
}

func null(rows [][]any, c int) bool {
	return !slices.ContainsFunc(rows, func(row []any) bool { return row[c] != nil })
}

var quoter = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

func element(b *strings.Builder, v any) {
	switch v := v.(type) {
	case nil:
		b.WriteString("NULL")
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case string:
		b.WriteByte('"')
		_, _ = quoter.WriteString(b, v)
		b.WriteByte('"')
	case []byte:
		b.WriteString(`"\\x`)
		b.WriteString(hex.EncodeToString(v))
		b.WriteByte('"')
	case time.Time:
		b.WriteByte('"')
		b.WriteString(v.UTC().Format("2006-01-02 15:04:05.999999Z07:00"))
		b.WriteByte('"')
	default:
		panic(fmt.Sprintf("postgres: no literal for %T", v))
	}
}

package postgres

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Literals turns rows into one array literal per column, which every driver can
// pass as text.
func Literals(rows [][]any) []any {
	if len(rows) == 0 {
		return nil
	}
	columns := make([]any, len(rows[0]))
	for c := range columns {
		var b strings.Builder
		b.WriteByte('{')
		for r := range rows {
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

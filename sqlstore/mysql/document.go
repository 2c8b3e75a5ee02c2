package mysql

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A batch is rows of values for one statement.
type batch [][]any

// fill writes arguments into a statement, so that nothing has to be prepared:
// $1 is the first one, a batch as a JSON array of arrays. Parentheses with $* are
// written once for each row of the batch, which is the first argument, with its
// values in that place; $# is how many they are, and $@ the first value of each.
func fill(text string, args []any) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		digits := len(after) - len(strings.TrimLeft(after, "0123456789"))
		switch {
		case digits > 0:
			n, _ := strconv.Atoi(after[:digits])
			literal(&b, args[n-1])
			text = after[digits:]
		case strings.HasPrefix(after, "*"):
			end := closing(after)
			tuples(&b, args[0].(batch), before[strings.LastIndexByte(before, '(')+1:], after[1:end])
			text = after[end:]
		case strings.HasPrefix(after, "#"):
			b.WriteString(strconv.Itoa(len(args[0].(batch))))
			text = after[1:]
		case strings.HasPrefix(after, "@"):
			firsts(&b, args[0].(batch))
			text = after[1:]
		default:
			b.WriteByte('$') // of a JSON path
			text = after
		}
	}
}

// closing finds the parenthesis that ends the one around the begin of the text.
func closing(text string) int {
	open := 0
	for i, c := range text {
		switch {
		case c == '(':
			open++
		case c == ')' && open == 0:
			return i
		case c == ')':
			open--
		}
	}
	panic("mysql: the parenthesis around $* is not closed")
}

// tuples writes the rows, each with the same begin and end, without the first
// begin and the last parenthesis.
func tuples(b *strings.Builder, rows batch, begin, end string) {
	for i, row := range rows {
		if i > 0 {
			b.WriteString(end + "),(" + begin)
		}
		for j, v := range row {
			if j > 0 {
				b.WriteByte(',')
			}
			literal(b, v)
		}
	}
	b.WriteString(end)
}

// firsts writes the first value of each row.
func firsts(b *strings.Builder, rows batch) {
	for i, row := range rows {
		if i > 0 {
			b.WriteByte(',')
		}
		literal(b, row[0])
	}
}

func literal(b *strings.Builder, v any) {
	switch v := v.(type) {
	case nil:
		b.WriteString("NULL")
	case string:
		quote(b, v)
	case []byte:
		quote(b, string(v))
	case batch:
		b.WriteByte('\'')
		document(b, v)
		b.WriteByte('\'')
	default:
		number(b, v)
	}
}

// quote writes a text as bytes. Whatever a character set or a mode of the
// session could read in another way goes as base64.
func quote(b *strings.Builder, v string) {
	for i := range len(v) {
		if c := v[i]; c < ' ' || c > '~' || c == '\'' || c == '\\' {
			b.WriteString("FROM_BASE64('")
			encode(b, v)
			b.WriteString("')")
			return
		}
	}
	b.WriteString("_binary'")
	b.WriteString(v)
	b.WriteByte('\'')
}

// document writes rows as one JSON array of arrays. It is plain ASCII without
// anything to escape.
func document(b *strings.Builder, rows batch) {
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
			element(b, v)
		}
		b.WriteByte(']')
	}
	b.WriteByte(']')
}

func element(b *strings.Builder, v any) {
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case string:
		b.WriteByte('"')
		encode(b, v)
		b.WriteByte('"')
	case []byte:
		b.WriteByte('"')
		encode(b, string(v))
		b.WriteByte('"')
	default:
		number(b, v)
	}
}

func number(b *strings.Builder, v any) {
	switch v := v.(type) {
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
	default:
		panic(fmt.Sprintf("mysql: no literal for %T", v))
	}
}

func encode(b *strings.Builder, v string) {
	e := base64.NewEncoder(base64.StdEncoding, b)
	_, _ = e.Write([]byte(v)) // to memory
	_ = e.Close()
}

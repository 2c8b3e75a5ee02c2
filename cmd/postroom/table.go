package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A table is printed with its columns aligned: numbers to the right.
type table struct {
	header []string
	rows   [][]any
}

func (t *table) add(cells ...any) { t.rows = append(t.rows, cells) }

func (t *table) print(b *strings.Builder) {
	widths := make([]int, len(t.header))
	lines := [][]string{t.header}
	right := make([]bool, len(t.header))
	for _, row := range t.rows {
		line := make([]string, len(row))
		for i, cell := range row {
			line[i] = text(cell)
			switch cell.(type) {
			case int64, size, estimate:
				right[i] = true
			}
		}
		lines = append(lines, line)
	}
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range lines {
		var row strings.Builder
		for i, cell := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if right[i] {
				cell = pad + cell
			} else {
				cell += pad
			}
			if i > 0 {
				row.WriteString("  ")
			}
			row.WriteString(cell)
		}
		b.WriteString(strings.TrimRight(row.String(), " "))
		b.WriteByte('\n')
	}
}

// size is a number of bytes; unknown when 0.
type size int64

// estimate is a number that the database guessed.
type estimate int64

func text(cell any) string {
	switch v := cell.(type) {
	case int64:
		return grouped(v)
	case estimate:
		return "~" + grouped(int64(v))
	case size:
		return v.String()
	case string:
		if v == "" {
			return "-"
		}
		return v
	default:
		return fmt.Sprint(v)
	}
}

// grouped writes a number with commas between thousands.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func (s size) String() string {
	if s == 0 {
		return "-"
	}
	if s < 1<<10 {
		return fmt.Sprintf("%d B", int64(s))
	}
	value, unit := float64(s)/(1<<10), 0
	for units := "KMGTP"; value >= 1024 && unit < len(units)-1; unit++ {
		value /= 1024
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTP"[unit])
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// headings are column names in the manner of a header.
func headings(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = strings.ToUpper(name)
	}
	return out
}

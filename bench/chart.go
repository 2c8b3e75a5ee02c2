package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The chart: a group of bars per row that counts messages per second, longer is
// better, on a logarithmic scale.
const (
	chartWidth = 860
	chartLeft  = 300
	chartRight = 80
	barHeight  = 11
	groupGap   = 10
	headHeight = 60
)

var colours = map[string]string{
	ours: "#1f6f5c", "bare SQL": "#9aa5b1", "River tuned": "#3b6fb6", "River default": "#a9c4e8",
	"Watermill tuned": "#7d5ba6", "Watermill default": "#c9b8de", "goqite": "#c9803f",
}

// svg draws the report.
func (r *report) svg() string {
	var body strings.Builder
	lowest, highest := r.scale()
	x := func(v float64) float64 {
		return (chartWidth - chartLeft - chartRight) * (math.Log10(v) - lowest) / max(highest-lowest, 1)
	}
	y := headHeight
	for _, d := range databases {
		rows := r.of(d.name)
		if len(rows) == 0 {
			continue
		}
		y += groupGap
		text(&body, 10, y+barHeight, "bold 13px", "start", d.name)
		y += 2 * barHeight
		for _, row := range rows {
			if row.unit == perSec {
				y = bars(&body, y, row, columns[d.name], x)
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif">`+"\n", chartWidth, y+groupGap)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", chartWidth, y+groupGap)
	text(&b, 10, 22, "bold 15px", "start", "Messages per second, one machine, one run")
	legend(&b)
	for power := lowest; power <= highest; power++ {
		at := chartLeft + int(x(math.Pow(10, power)))
		fmt.Fprintf(&b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#e3e7eb"/>`+"\n", at, headHeight, at, y)
		text(&b, at, headHeight-2, "9px", "middle", number(math.Pow(10, power)))
	}
	return b.String() + body.String() + "</svg>\n"
}

// scale gives the powers of ten that all bars lie between.
func (r *report) scale() (lowest, highest float64) {
	lowest, highest = math.Inf(1), math.Inf(-1)
	for _, row := range r.results {
		for _, v := range row.values {
			if row.unit == perSec && v > 0 {
				lowest, highest = min(lowest, math.Floor(math.Log10(v))), max(highest, math.Ceil(math.Log10(v)))
			}
		}
	}
	if lowest > highest {
		return 0, 1
	}
	return lowest, highest
}

func bars(b *strings.Builder, y int, row result, names []string, x func(float64) float64) int {
	top := y
	for _, name := range names {
		v := value(row, name)
		if math.IsNaN(v) || v <= 0 {
			continue
		}
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", chartLeft, y, max(x(v), 1), barHeight-2, colours[name])
		text(b, chartLeft+int(x(v))+4, y+barHeight-3, "9px", "start", number(v))
		y += barHeight
	}
	text(b, chartLeft-8, (top+y)/2+3, "11px", "end", row.name)
	return y + groupGap
}

func legend(b *strings.Builder) {
	at := 10
	for _, name := range []string{ours, "bare SQL", "River tuned", "River default", "Watermill tuned", "Watermill default", "goqite"} {
		fmt.Fprintf(b, `<rect x="%d" y="32" width="10" height="10" fill="%s"/>`+"\n", at, colours[name])
		text(b, at+14, 41, "11px", "start", name)
		at += 30 + 7*len(name)
	}
}

func text(b *strings.Builder, x, y int, font, anchor, s string) {
	weight := ""
	if size, bold := strings.CutPrefix(font, "bold "); bold {
		font, weight = size, ` font-weight="bold"`
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" font-size="%s"%s text-anchor="%s" fill="#222b33">%s</text>`+"\n", x, y, strings.TrimSuffix(font, "px"), weight, anchor, html.EscapeString(s))
}

package main

import (
	"fmt"
	"math"
)

// A goal is a ratio, or a bound, that a figure of Postroom is to reach.
type goal struct {
	text string
	// value is what is compared with the bound; NaN when it was not measured.
	value func(r result, all []result) float64
	bound float64
	// most: the value may not exceed the bound.
	most bool
}

func (g goal) reached(v float64) bool {
	if g.most {
		return v <= g.bound
	}
	return v >= g.bound
}

// verdict is what the table shows. A hint is not judged.
func (g goal) verdict(r result, all []result, hint bool) string {
	v := g.value(r, all)
	switch {
	case math.IsNaN(v):
		return g.text + ": not measured"
	case hint:
		return fmt.Sprintf("%s: hint %s", g.text, number(v))
	case g.reached(v):
		return fmt.Sprintf("%s: reached (%s)", g.text, number(v))
	default:
		return fmt.Sprintf("%s: **not reached** (%s)", g.text, number(v))
	}
}

// times wants the figure to be so many times that of a system, by which "River"
// and "Watermill" mean the better of their settings.
func times(factor float64, other string) goal {
	text := fmt.Sprintf("≥ %s× %s", number(factor), other)
	if factor < 1 {
		text = fmt.Sprintf("≥ %.0f %% of %s", factor*100, other)
	}
	return goal{text: text, bound: factor, value: func(r result, _ []result) float64 {
		return r.values[ours] / best(r, other)
	}}
}

// timesBestDrain compares with River's best setting in any of the drains.
func timesBestDrain(factor float64) goal {
	return goal{text: fmt.Sprintf("≥ %s× River's best", number(factor)), bound: factor, value: func(r result, all []result) float64 {
		most := math.NaN()
		for _, other := range all {
			if other.database == r.database && other.isDrain() {
				most = greater(most, best(other, "River"))
			}
		}
		return r.values[ours] / most
	}}
}

// atMost wants the figure itself to stay below a bound.
func atMost(bound float64, unit string) goal {
	return goal{text: fmt.Sprintf("≤ %s %s", number(bound), unit), bound: bound, most: true, value: func(r result, _ []result) float64 {
		return r.values[ours]
	}}
}

// atLeast wants the figure itself to reach a bound.
func atLeast(bound float64, unit string) goal {
	return goal{text: fmt.Sprintf("≥ %s %s", number(bound), unit), bound: bound, value: func(r result, _ []result) float64 {
		return r.values[ours]
	}}
}

// noMoreThan wants the figure to be no more than River's.
func noMoreThan(other string) goal {
	return goal{text: "≤ " + other + "'s", bound: 1, most: true, value: func(r result, _ []result) float64 {
		return r.values[ours] / best(r, other)
	}}
}

const ours = "Postroom"

// best gives the figure of a system, or the better one of its two settings.
func best(r result, other string) float64 {
	if other != "River" && other != "Watermill" {
		return value(r, other)
	}
	tuned, plain := value(r, other+" tuned"), value(r, other+" default")
	if r.lower {
		return -greater(-tuned, -plain)
	}
	return greater(tuned, plain)
}

func value(r result, name string) float64 {
	if v, ok := r.values[name]; ok {
		return v
	}
	return math.NaN()
}

// greater ignores what was not measured.
func greater(a, b float64) float64 {
	if math.IsNaN(a) || b > a {
		return b
	}
	return a
}

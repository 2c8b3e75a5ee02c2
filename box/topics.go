package box

import (
	"iter"
	"slices"
	"strings"

	"github.com/postroom/postroom"
)

// Topics finds what is registered for a topic. Patterns are
//
//	order.paid   this topic
//	order.*      each topic that begins with "order."; the longest pattern wins
//	*            each topic that no other pattern matches
type Topics[V any] struct {
	exact    map[string]V
	prefixes []prefix[V] // longest first
	fallback *V
}

type prefix[V any] struct {
	stem  string
	value V
}

const allTopics = "*"

// CheckPattern reports why a pattern can't be used.
func CheckPattern(pattern string) error {
	stem := strings.TrimSuffix(pattern, ".*")
	switch {
	case pattern == "":
		return &postroom.ArgumentError{Argument: "pattern", Reason: "is empty"}
	case pattern != allTopics && (stem == "" || strings.Contains(stem, "*")):
		return &postroom.ArgumentError{Argument: "pattern", Reason: "may have a * only as all of it, or at its end after a dot"}
	}
	return nil
}

// Set registers a value for a pattern that CheckPattern accepts.
func (t *Topics[V]) Set(pattern string, v V) {
	stem, wild := strings.CutSuffix(pattern, "*")
	switch {
	case pattern == allTopics:
		t.fallback = &v
	case wild:
		t.prefixes = append(t.prefixes, prefix[V]{stem, v})
		slices.SortFunc(t.prefixes, func(a, b prefix[V]) int { return len(b.stem) - len(a.stem) })
	default:
		if t.exact == nil {
			t.exact = map[string]V{}
		}
		t.exact[pattern] = v
	}
}

// Find gives the value of the pattern that fits a topic best.
func (t *Topics[V]) Find(topic string) (v V, found bool) {
	if v, found = t.exact[topic]; found {
		return v, true
	}
	for _, p := range t.prefixes {
		if strings.HasPrefix(topic, p.stem) {
			return p.value, true
		}
	}
	if t.fallback != nil {
		return *t.fallback, true
	}
	return v, false
}

// All gives all values, in no order.
func (t *Topics[V]) All() iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, v := range t.exact {
			if !yield(v) {
				return
			}
		}
		for _, p := range t.prefixes {
			if !yield(p.value) {
				return
			}
		}
		if t.fallback != nil {
			yield(*t.fallback)
		}
	}
}

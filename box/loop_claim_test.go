package box

import (
	"context"
	"testing"

	"github.com/postroom/postroom"
)

// A store with one writer is idle while what a claim brought is being started.
func TestLoop_claims_before_it_starts_what_came_where_one_writes_at_a_time(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		ctx    context.Context
		change func(l *Loop)
		want   bool
	}{
		"room for a batch":     {t.Context(), func(*Loop) {}, true},
		"room for less":        {t.Context(), func(l *Loop) { l.busy = 1 }, false},
		"nothing is ready":     {t.Context(), func(l *Loop) { l.look = lookNot }, false},
		"one is under way":     {t.Context(), func(l *Loop) { l.flying = 1 }, false},
		"several can write":    {t.Context(), func(l *Loop) { l.keeper.serial = false }, false},
		"a suspect runs alone": {t.Context(), func(l *Loop) { l.solo = true }, false},
		"it drains":            {t.Context(), func(l *Loop) { l.over = true }, false},
		"it is told to stop":   {ended, func(*Loop) {}, false},
	} {
		l := NewLoop(&Box{}, inOne{}, LoopOptions{Concurrency: 4, Batch: 2})
		l.keeper.serial, l.look = true, lookReady
		l.waiting = []claimed{{Message: new(postroom.Message)}, {Message: new(postroom.Message)}}
		if c.change(l); l.early(c.ctx) != c.want {
			t.Errorf("%s: %v, want %v", name, !c.want, c.want)
		}
	}
}

package box

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom"
)

// A store with one writer is idle while what a claim brought is being started. But
// what came must not wait for an answer of the database.
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
		"groups are looked at": {t.Context(), func(l *Loop) { l.look = lookFull }, false},
		"pauses are looked at": {t.Context(), func(l *Loop) { l.lastFull = time.Time{} }, false},
		"suspects are":         {t.Context(), func(l *Loop) { l.probe = time.Now() }, false},
		"it drains":            {t.Context(), func(l *Loop) { l.over = true }, false},
		"it is told to stop":   {ended, func(*Loop) {}, false},
	} {
		l := NewLoop(&Box{}, inOne{}, LoopOptions{Concurrency: 4, Batch: 2, Lease: time.Minute, Poll: time.Minute})
		l.keeper.serial, l.look = true, lookReady
		l.lastFull, l.probe = time.Now(), l.nextProbe()
		l.waiting = []claimed{{Message: new(postroom.Message)}, {Message: new(postroom.Message)}}
		if c.change(l); l.early(c.ctx) != c.want {
			t.Errorf("%s: %v, want %v", name, !c.want, c.want)
		}
	}
}

// A store that finds out what its database can't do.
type learning struct {
	Store
	asked atomic.Int32
}

func (s *learning) Exchanges() bool { return s.asked.Add(1) == 1 }

func (s *learning) Exchange(_ context.Context, settlements []Settlement, _ ClaimRequest) ([]Settled, []*postroom.Message, error) {
	return make([]Settled, len(settlements)), nil, nil
}

// Others may find out, between the start of a claim and its first statement, that
// the store had better not settle and claim together.
func TestLoop_settles_and_claims_together_once_it_set_out_to(t *testing.T) {
	b, err := New(&learning{}, "c", Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := NewLoop(b, inOne{}, LoopOptions{Owner: "w", Concurrency: 4, Batch: 2, Lease: time.Minute, Poll: time.Minute})
	l.lasting, l.look, l.lastFull = t.Context(), lookReady, time.Now()
	m := &postroom.Message{Lease: postroom.Lease{Seq: 1, Owner: "w"}}
	l.ended = []*Job{{Messages: []*postroom.Message{m}}}
	l.ended[0].End(m, Settlement{Verb: Ack})
	l.claim(t.Context())
	if f := <-l.landed; f.err != nil || len(f.settled) != 1 {
		t.Errorf("settled %d, %v", len(f.settled), f.err)
	}
}

package box

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postroom/postroom"
)

// strict lets nobody ask for its error.
type strict struct{ context.Context }

func (strict) Err() error { panic("asked") }

// It may hold a lock, or give its error a moment before it is done.
func TestKeeper_asks_a_context_that_is_not_its_own_nothing_later(t *testing.T) {
	k := &Keeper{lease: time.Minute}
	ctx, h := k.Hold(strict{t.Context()}, time.Now())
	if ctx.Err() != nil {
		t.Error(ctx.Err())
	}
	k.Drop(h)
	if ctx.Err() == nil {
		t.Error("it has not ended")
	}
}

func TestKeeper_keeps_those_that_are_not_dropped(t *testing.T) {
	k := &Keeper{lease: time.Minute}
	holds := make([]*Hold, 5)
	for i := range holds {
		_, holds[i] = k.Hold(t.Context(), time.Now())
	}
	for _, i := range []int{0, 4, 2, 0} { // the last takes the place of the first, and is dropped next
		k.Drop(holds[i])
	}
	for i, h := range holds {
		if lost := k.Lost(h); lost != (i != 1 && i != 3) {
			t.Errorf("hold %d is lost: %v", i, lost)
		}
	}
	if len(k.holds) != 2 {
		t.Errorf("%d are kept, want 2", len(k.holds))
	}
}

// Several may have expired at one look.
func TestKeeper_loses_what_has_expired_and_nothing_else(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &Keeper{lease: time.Minute}
		expired := []bool{true, false, true, true, false, true}
		ctxs := make([]context.Context, len(expired))
		for i, over := range expired {
			asked := time.Now()
			if over {
				asked = asked.Add(-time.Hour)
			}
			ctxs[i], _ = k.Hold(t.Context(), asked)
		}
		k.due(time.Now())
		for i, over := range expired {
			if lost := errors.Is(context.Cause(ctxs[i]), postroom.ErrLeaseLost); lost != over {
				t.Errorf("lease %d is lost: %v, want %v", i, lost, over)
			}
		}
		if len(k.holds) != 2 {
			t.Errorf("%d are kept, want 2", len(k.holds))
		}
	})
}

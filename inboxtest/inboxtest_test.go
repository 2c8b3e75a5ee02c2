package inboxtest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/inboxtest"
)

func msg(id, topic string) postroom.Message {
	return postroom.Message{Source: "shop", ID: id, Topic: topic, Payload: []byte(`{}`)}
}

func TestAHandlerIsSeenThroughRetriesOnTheTestsClock(t *testing.T) {
	in := inboxtest.New(t, inbox.Options{})
	runs := 0
	mux := inbox.NewMux()
	_ = mux.HandleFunc("flaky", func(context.Context, *postroom.Message) error {
		if runs++; runs < 4 {
			return errors.New("not yet")
		}
		return nil
	})
	_ = mux.HandleFunc("broken", func(context.Context, *postroom.Message) error { return errors.New("never") })
	_ = mux.HandleFunc("stale", func(context.Context, *postroom.Message) error { return postroom.Discard("stale") })
	later := msg("4", "stale")
	later.DueAt = in.Clock.Now().Add(24 * time.Hour)

	in.DeliverTwice(msg("1", "flaky"))
	in.Deliver(msg("2", "broken"))
	in.Deliver(msg("3", "stale"))
	in.Deliver(later)

	began := in.Clock.Now()
	in.RunUntilIdle(mux)
	if n := in.WantWaiting("shop", "1"); n != 1 {
		t.Errorf("attempt %d", n)
	}
	in.WantDiscarded("shop", "3")
	in.RunToEnd(mux)
	in.WantDone("shop", "1", 4)
	if e := in.WantDead("shop", "2"); e != "never" {
		t.Errorf("died with %q", e)
	}
	in.WantDiscarded("shop", "4")
	in.WantUnknown("shop", "5")
	if d := in.Clock.Now().Sub(began); d != 24*time.Hour {
		t.Errorf("the clock moved by %s", d)
	}
	if res := in.Deliver(msg("1", "flaky")); res.Outcome != postroom.Duplicate {
		t.Errorf("a late duplicate is %s", res.Outcome)
	}
}

// failing gathers what a test would have been told.
type failing struct {
	testing.TB
	said []string
}

func (f *failing) Helper()                        {}
func (f *failing) Errorf(format string, a ...any) { f.said = append(f.said, fmt.Sprintf(format, a...)) }

func (f *failing) Fatalf(format string, a ...any) {
	f.Errorf(format, a...)
	runtime.Goexit()
}

func TestAssertionsFailAndExplain(t *testing.T) {
	f := &failing{TB: t}
	in := inboxtest.New(f, inbox.Options{})
	in.Deliver(msg("1", "none"))
	for name, assert := range map[string]func(){
		"WantDone":         func() { in.WantDone("shop", "1", 0) },
		"WantDone unknown": func() { in.WantDone("shop", "2", 0) },
		"WantDead":         func() { in.WantDead("shop", "1") },
		"WantDiscarded":    func() { in.WantDiscarded("shop", "1") },
		"WantWaiting":      func() { in.WantWaiting("shop", "2") },
		"WantUnknown":      func() { in.WantUnknown("shop", "1") },
		"Deliver":          func() { in.Deliver(msg("", "x")) },
		"RunToEnd":         func() { in.RunToEnd(inbox.NewMux()) },
	} {
		before := len(f.said)
		done := make(chan struct{})
		go func() {
			defer close(done)
			assert()
		}()
		<-done
		if len(f.said) == before {
			t.Errorf("%s did not fail", name)
		}
	}
}

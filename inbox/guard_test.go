package inbox_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
)

func TestGuardMarksBeforeItRuns(t *testing.T) {
	f := open(t, inbox.Options{})
	runs := 0
	handle := func(ctx context.Context, m *postroom.Message) error {
		runs++
		f.wantState(t, "1", postroom.StateProcessing)
		_, err := f.Guard(ctx, message("1"), mustNotRun(t), inbox.GuardOptions{})
		wantErr(t, err, postroom.ErrInProgress)
		return nil
	}
	for _, want := range []postroom.Outcome{postroom.Accepted, postroom.Duplicate} {
		res, err := f.Guard(t.Context(), message("1"), handle, inbox.GuardOptions{Handler: "mail"})
		if err != nil || res.Outcome != want || res.State != postroom.StateDone {
			t.Errorf("got %+v, %v; want %s", res, err, want)
		}
	}
	if runs != 1 {
		t.Errorf("%d runs", runs)
	}
	if name := f.record(t, "1").Done.Handler; name != "mail" {
		t.Errorf("handler %q is recorded", name)
	}
}

// mustNotRun is a handler that must not run.
func mustNotRun(t *testing.T) postroom.HandlerFunc {
	return func(context.Context, *postroom.Message) error {
		t.Error("the handler ran")
		return nil
	}
}

func TestGuardVerdicts(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name    string
		release bool
		verdict func() error
		want    error
		state   postroom.State
	}{
		{"error makes it dead", false, func() error { return boom }, boom, postroom.StateDead},
		{"panic makes it dead", false, func() error { panic(boom) }, boom, postroom.StateDead},
		{"error returns it", true, func() error { return boom }, boom, postroom.StateNone},
		{"retry after returns it", true, func() error { return postroom.RetryAfter(time.Minute, boom) }, boom, postroom.StateNone},
		{"permanent makes it dead although released", true, func() error { return postroom.Permanent(boom) }, boom, postroom.StateDead},
		{"discard makes it done", false, func() error { return postroom.Discard("old") }, nil, postroom.StateDone},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := open(t, inbox.Options{})
			_, err := f.Guard(t.Context(), message("1"), func(context.Context, *postroom.Message) error {
				return c.verdict()
			}, inbox.GuardOptions{ReleaseOnError: c.release})
			wantErr(t, err, c.want)
			f.wantState(t, "1", c.state)
			if c.state == postroom.StateDead {
				_, err := f.Guard(t.Context(), message("1"), mustNotRun(t), inbox.GuardOptions{})
				wantErr(t, err, postroom.ErrDead)
			}
		})
	}
}

func TestGuardRecordsTheStackOfAPanic(t *testing.T) {
	f := open(t, inbox.Options{})
	_, err := f.Guard(t.Context(), message("1"), panics, inbox.GuardOptions{})
	var p *postroom.PanicError
	if !errors.As(err, &p) {
		t.Fatalf("got %v", err)
	}
	if last := f.record(t, "1").LastError; !strings.HasPrefix(last, "panic: oh") || !strings.Contains(last, "inbox_test.panics") {
		t.Errorf("recorded is %q", last)
	}
}

func panics(context.Context, *postroom.Message) error { panic("oh") }

func TestGuardReturnsAWaitingMessageWithItsDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		f.receive(t, "1")
		_, err := f.Guard(t.Context(), message("1"), func(context.Context, *postroom.Message) error {
			return postroom.RetryAfter(time.Hour, errors.New("busy"))
		}, inbox.GuardOptions{ReleaseOnError: true})
		if err == nil {
			t.Error("no error")
		}
		r := f.record(t, "1")
		if r.Stage != postroom.StageScheduled || r.Attempt != 1 || time.Until(r.NextAt) != time.Hour {
			t.Errorf("stage %s, attempt %d, next in %s", r.Stage, r.Attempt, time.Until(r.NextAt))
		}
	})
}

func TestGuardRenewsItsLeaseWhileTheHandlerRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		_, err := f.Guard(t.Context(), message("1"), func(ctx context.Context, _ *postroom.Message) error {
			for range 10 {
				time.Sleep(inbox.DefaultLease)
				if n, err := f.Reap(ctx); n != 0 || err != nil {
					t.Errorf("reaped %d, %v", n, err)
				}
			}
			return ctx.Err()
		}, inbox.GuardOptions{})
		ok(t, err)
		f.wantState(t, "1", postroom.StateDone)
	})
}

func TestGuardSettlesWhenTheCallerHasGone(t *testing.T) {
	f := open(t, inbox.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := f.Guard(ctx, message("1"), func(context.Context, *postroom.Message) error {
		cancel()
		return nil
	}, inbox.GuardOptions{})
	ok(t, err)
	f.wantState(t, "1", postroom.StateDone)
}

func TestGuardOfACrashedRun(t *testing.T) {
	for _, release := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			deaths := 0
			f := open(t, inbox.Options{OnDead: func(_ context.Context, e postroom.DiedEvent) {
				deaths++
				if e.Error != "unknown outcome" || e.Key.ID != "1" {
					t.Errorf("died: %+v", e)
				}
			}})
			// The run never comes back: nobody renews its lease.
			_, err := f.Box().Take(t.Context(), guardPut(release))
			ok(t, err)
			time.Sleep(inbox.DefaultLease)
			res, err := f.Guard(t.Context(), message("1"), func(context.Context, *postroom.Message) error { return nil }, inbox.GuardOptions{})
			if release && (err != nil || res.Outcome != postroom.Accepted) {
				t.Errorf("released: got %+v, %v", res, err)
			}
			if !release {
				wantErr(t, err, postroom.ErrDead)
			}
			if want := map[bool]int{true: 0, false: 1}[release]; deaths != want {
				t.Errorf("%d deaths reported, want %d", deaths, want)
			}
		})
	}
}

func TestGuardArguments(t *testing.T) {
	f := open(t, inbox.Options{})
	_, err := f.Guard(t.Context(), message(""), mustNotRun(t), inbox.GuardOptions{})
	wantArgument(t, err, "id")
	_, err = f.Guard(t.Context(), message("1"), nil, inbox.GuardOptions{})
	wantArgument(t, err, "handler")
	_, err = f.Guard(t.Context(), message("1"), mustNotRun(t), inbox.GuardOptions{Lease: -1})
	wantArgument(t, err, "lease")
	_, err = f.Once(t.Context(), message("1"), nil, inbox.OnceOptions{})
	wantArgument(t, err, "handler")
}

func TestGuardEndsTheRenewalOfAHandlerThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		over := make(chan struct{})
		go func() {
			defer close(over)
			_, _ = f.Guard(t.Context(), message("1"), func(context.Context, *postroom.Message) error {
				runtime.Goexit()
				return nil
			}, inbox.GuardOptions{})
		}()
		<-over
		time.Sleep(2 * inbox.DefaultLease)
		_, err := f.Guard(t.Context(), message("1"), mustNotRun(t), inbox.GuardOptions{})
		wantErr(t, err, postroom.ErrDead)
	})
}

package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/memstore"
)

// work runs a worker until stop is called, which waits for it.
func work(t *testing.T, in *inbox.Inbox, mux *inbox.Mux, o inbox.WorkerOptions) (w *inbox.Worker, stop func() error) {
	t.Helper()
	w = inbox.NewWorker(in, mux, o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return w, sync.OnceValue(func() error {
		cancel()
		return <-done
	})
}

// handling makes a mux with one handler for all topics.
func handling(h func(ctx context.Context, m *postroom.Message) error) *inbox.Mux {
	mux := inbox.NewMux()
	_ = mux.HandleFunc("*", h)
	return mux
}

func TestIBX076_the_worker_handles_what_is_received(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		var ran atomic.Int32
		_, stop := work(t, f.Inbox, handling(func(ctx context.Context, m *postroom.Message) error {
			ran.Add(1)
			if m.Topic != "order.paid" || m.Lease.Owner == "" || string(m.Payload) != "{}" {
				t.Errorf("IBX-076: got %+v", m)
			}
			return nil
		}), inbox.WorkerOptions{})
		for i := range 120 {
			f.receive(t, fmt.Sprint(i))
		}
		synctest.Wait()
		ok(t, stop())
		if ran.Load() != 120 {
			t.Errorf("%d runs, want 120", ran.Load())
		}
		if n := f.total(t, box.CountDone); n != 120 {
			t.Errorf("%d done counted, want 120", n)
		}
	})
}

func TestWorkerFindsAtItsPollWhatNobodyTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		var at time.Time
		_, stop := work(t, f.Inbox, handling(func(context.Context, *postroom.Message) error {
			at = time.Now()
			return nil
		}), inbox.WorkerOptions{})
		synctest.Wait()
		other := openOn(t, f.store, inbox.Options{})
		other.receive(t, "1")
		began := time.Now()
		time.Sleep(10 * time.Second)
		ok(t, stop())
		if d := at.Sub(began); d <= 0 || d > 5*time.Second {
			t.Errorf("handled after %s", d)
		}
	})
}

func TestIBX080_081_083_084_111_failures_are_retried_with_backoff_then_dead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var deaths []string
		f := open(t, inbox.Options{OnDead: func(_ context.Context, e postroom.DiedEvent) {
			deaths = append(deaths, e.Key.ID+": "+e.Error)
		}})
		var runs []time.Time
		_, stop := work(t, f.Inbox, handling(func(_ context.Context, m *postroom.Message) error {
			if m.Attempt != len(runs) {
				t.Errorf("attempt %d in run %d", m.Attempt, len(runs)+1)
			}
			runs = append(runs, time.Now())
			return fmt.Errorf("failure %d", len(runs))
		}), inbox.WorkerOptions{Backoff: postroom.DefaultBackoff})
		f.receive(t, "1")
		time.Sleep(10 * time.Minute)
		ok(t, stop())
		if len(runs) != 10 {
			t.Fatalf("%d runs, want 10", len(runs))
		}
		for i := 1; i < len(runs); i++ {
			least := postroom.DefaultBackoff(i)
			if d := runs[i].Sub(runs[i-1]); d < least || d > least+5*time.Second {
				t.Errorf("run %d came after %s, want %s and at most a poll", i+1, d, least)
			}
		}
		f.wantState(t, "1", postroom.StateDead)
		if len(deaths) != 1 || deaths[0] != "1: failure 10" {
			t.Errorf("OnDead was told %q", deaths)
		}
		if n := len(f.logs.with("level=ERROR", "handler failed", "id=1", "topic=order.paid")); n != 10 {
			t.Errorf("IBX-111: %d lines, want 10", n)
		}
	})
}

func TestIBX075_verdicts_of_a_handler(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name    string
		verdict func() error
		state   postroom.State
		delay   time.Duration
		note    string
	}{
		{"permanent", func() error { return fmt.Errorf("no: %w", postroom.Permanent(boom)) }, postroom.StateDead, 0, "no: boom"},
		{"retry after", func() error { return postroom.RetryAfter(time.Hour, boom) }, postroom.StateProcessing, time.Hour, "boom"},
		{"discard", func() error { return postroom.Discard("old") }, postroom.StateDone, 0, "old"},
		{"panic", func() error { panic("oh no") }, postroom.StateProcessing, 2 * time.Second, "panic: oh no"},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := open(t, inbox.Options{})
			runs := 0
			_, stop := work(t, f.Inbox, handling(func(context.Context, *postroom.Message) error {
				runs++
				return c.verdict()
			}), inbox.WorkerOptions{Backoff: postroom.DefaultBackoff})
			f.receive(t, "1")
			synctest.Wait()
			r := f.record(t, "1")
			if r.State != c.state || (c.delay > 0 && time.Until(r.NextAt) != c.delay) {
				t.Errorf("%s: %s, next in %s", c.name, r.State, time.Until(r.NextAt))
			}
			if !strings.HasPrefix(r.LastError+r.Done.Note, c.note) {
				t.Errorf("%s: recorded %q %q", c.name, r.LastError, r.Done.Note)
			}
			ok(t, stop())
		})
	}
}

func TestIBX082_rules_turn_errors_into_responses(t *testing.T) {
	sentinel := errors.New("sentinel")
	type special struct{ error }
	for _, c := range []struct {
		name  string
		rules []inbox.Rule
		err   error
		want  func(*inbox.Record) bool
	}{
		{"dead by errors.Is", []inbox.Rule{inbox.On(sentinel, inbox.MakeDead)}, fmt.Errorf("x: %w", sentinel), func(r *inbox.Record) bool { return r.State == postroom.StateDead }},
		{"fixed delay by errors.As", []inbox.Rule{inbox.OnType[special](inbox.RetryIn(time.Hour))}, special{sentinel}, func(r *inbox.Record) bool { return time.Until(r.NextAt) == time.Hour }},
		{"backoff", []inbox.Rule{inbox.On(sentinel, inbox.RetryWith(func(n int) time.Duration { return time.Duration(n) * time.Minute }))}, sentinel, func(r *inbox.Record) bool { return time.Until(r.NextAt) == time.Minute }},
		{"discard", []inbox.Rule{inbox.On(sentinel, inbox.DiscardIt)}, sentinel, func(r *inbox.Record) bool { return r.Done.Discarded && r.Done.Note == "sentinel" }},
		{"pause", []inbox.Rule{inbox.On(sentinel, inbox.PauseTopic)}, sentinel, func(r *inbox.Record) bool { return r.Stage == postroom.StageParked && r.Attempt == 0 }},
		{"no match", []inbox.Rule{inbox.OnType[special](inbox.MakeDead)}, sentinel, func(r *inbox.Record) bool { return r.Attempt == 1 && r.State == postroom.StateProcessing }},
		{"verdict first", []inbox.Rule{inbox.On(sentinel, inbox.MakeDead)}, postroom.RetryAfter(time.Hour, sentinel), func(r *inbox.Record) bool { return time.Until(r.NextAt) == time.Hour }},
	} {
		for _, where := range []string{"handler", "worker"} {
			synctest.Test(t, func(t *testing.T) {
				f := open(t, inbox.Options{})
				mux := inbox.NewMux()
				h := inbox.HandlerOptions{}
				o := inbox.WorkerOptions{}
				if where == "handler" {
					h.Rules = c.rules
				} else {
					o.Rules = c.rules
				}
				ok(t, mux.HandleWith("order.*", postroom.HandlerFunc(func(context.Context, *postroom.Message) error { return c.err }), h))
				_, stop := work(t, f.Inbox, mux, o)
				f.receive(t, "1")
				synctest.Wait()
				if r := f.record(t, "1"); !c.want(r) {
					t.Errorf("%s by %s: %s, attempt %d, next in %s", c.name, where, r.Stage, r.Attempt, time.Until(r.NextAt))
				}
				ok(t, stop())
			})
		}
	}
}

func TestRetryNowRunsAgainAtTheNextPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		runs := 0
		_, stop := work(t, f.Inbox, handling(func(context.Context, *postroom.Message) error {
			if runs++; runs < 3 {
				return errors.New("not yet")
			}
			return nil
		}), inbox.WorkerOptions{Rules: []inbox.Rule{inbox.OnMatch(func(error) bool { return true }, inbox.RetryNow)}})
		f.receive(t, "1")
		time.Sleep(3 * time.Second)
		f.wantState(t, "1", postroom.StateDone)
		ok(t, stop())
	})
}

func TestIBX074_unhandled_topics_are_released_at_no_cost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		var seen []time.Time
		in := openBox(t, f.store, inbox.Options{Observer: &postroom.Observer{
			Unhandled: func(context.Context, postroom.StartedEvent) { seen = append(seen, time.Now()) },
		}}, f.logs)
		_, stop := work(t, in, inbox.NewMux(), inbox.WorkerOptions{})
		f.receive(t, "1")
		time.Sleep(10 * time.Minute)
		ok(t, stop())
		if len(seen) < 8 || len(seen) > 25 {
			t.Errorf("looked at %d times in ten minutes", len(seen))
		}
		for i := 2; i < len(seen); i++ {
			if seen[i].Sub(seen[i-1]) > 70*time.Second {
				t.Errorf("waited %s", seen[i].Sub(seen[i-1]))
			}
		}
		if r := f.record(t, "1"); r.Attempt != 0 || r.Stage != postroom.StageScheduled {
			t.Errorf("attempt %d, %s", r.Attempt, r.Stage)
		}
		if len(f.logs.with("level=WARN", "no handler for topic", "topic=order.paid")) != len(seen) {
			t.Errorf("logs:\n%s", f.logs)
		}
	})
}

func TestWorkerRefusesWhatCannotWork(t *testing.T) {
	f := open(t, inbox.Options{})
	for argument, o := range map[string]inbox.WorkerOptions{
		"Concurrency": {Concurrency: -1}, "Lease": {Lease: -1}, "Poll": {Poll: -1}, "HandlerTimeout": {HandlerTimeout: -1},
	} {
		wantArgument(t, inbox.NewWorker(f.Inbox, inbox.NewMux(), o).Run(t.Context()), argument)
	}
	wantArgument(t, inbox.NewWorker(f.Inbox, nil, inbox.WorkerOptions{}).Run(t.Context()), "mux")
	mux := inbox.NewMux()
	_ = mux.Handle("", nil)
	wantArgument(t, inbox.NewWorker(f.Inbox, mux, inbox.WorkerOptions{}).Run(t.Context()), "pattern")
}

// pooled has few connections.
type pooled struct{ *memstore.Store }

func (pooled) MaxConns() int   { return 11 }
func (pooled) OneWriter() bool { return false }

func TestTooSmallAPoolIsRefusedWithWhatToRaise(t *testing.T) {
	in := openBox(t, pooled{memstore.New(memstore.Options{})}, inbox.Options{}, &logs{})
	mux := inbox.NewMux()
	ok(t, mux.Handle("a", postroom.TxHandlerFunc(nothing)))
	err := inbox.NewWorker(in, mux, inbox.WorkerOptions{}).RunUntilIdle(t.Context())
	if err == nil || !strings.Contains(err.Error(), "raise its maximum to 12") {
		t.Errorf("got %v", err)
	}
	ok(t, inbox.NewWorker(in, mux, inbox.WorkerOptions{Concurrency: 9}).RunUntilIdle(t.Context()))
	ok(t, inbox.NewWorker(in, inbox.NewMux(), inbox.WorkerOptions{}).RunUntilIdle(t.Context()))
}

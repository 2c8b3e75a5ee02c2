package inbox_test

import (
	"context"
	"errors"
	"fmt"
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

func TestIBX079_messages_run_side_by_side_up_to_the_concurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		for i := range 40 {
			f.receive(t, fmt.Sprint(i))
		}
		var now, most atomic.Int32
		began := time.Now()
		err := inbox.NewWorker(f.Inbox, handling(func(context.Context, *postroom.Message) error {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Second)
			now.Add(-1)
			return nil
		}), inbox.WorkerOptions{Concurrency: 4}).RunUntilIdle(t.Context())
		ok(t, err)
		if most.Load() != 4 || time.Since(began) != 10*time.Second {
			t.Errorf("%d at once, %s in all; want 4 and 10s", most.Load(), time.Since(began))
		}
	})
}

func TestClaimsArePacedByFreeSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &logs{}
		var asked atomic.Int64
		store := memstore.New(memstore.Options{})
		in := openBox(t, store, inbox.Options{Observer: &postroom.Observer{Claimed: func(_ context.Context, e postroom.ClaimedEvent) {
			asked.Store(max(asked.Load(), int64(e.Asked)))
		}}}, l)
		msgs := make([]postroom.Message, 500)
		for i := range msgs {
			msgs[i] = message(fmt.Sprint(i))
		}
		_, err := in.ReceiveAll(t.Context(), msgs)
		ok(t, err)
		_, stop := work(t, in, handling(func(context.Context, *postroom.Message) error {
			time.Sleep(time.Second)
			return nil
		}), inbox.WorkerOptions{Concurrency: 7})
		time.Sleep(3*time.Second + time.Millisecond)
		s, err := in.Stats(t.Context())
		ok(t, err)
		for _, c := range s.Live {
			if c.Stage == postroom.StageLeased && c.N > 7 {
				t.Errorf("%d leased, want at most 7", c.N)
			}
		}
		if asked.Load() > 7 {
			t.Errorf("asked for %d", asked.Load())
		}
		ok(t, stop())
	})
}

func TestLongRunsKeepTheirLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		var runs atomic.Int32
		mux := handling(func(ctx context.Context, _ *postroom.Message) error {
			runs.Add(1)
			time.Sleep(10 * time.Minute)
			return ctx.Err()
		})
		_, stop := work(t, f.Inbox, mux, inbox.WorkerOptions{})
		_, stopOther := work(t, openOn(t, f.store, inbox.Options{}).Inbox, mux, inbox.WorkerOptions{})
		f.receive(t, "1", "2", "3")
		time.Sleep(11 * time.Minute)
		ok(t, stop())
		ok(t, stopOther())
		if runs.Load() != 3 {
			t.Errorf("%d runs, want 3", runs.Load())
		}
		f.wantState(t, "3", postroom.StateDone)
	})
}

// outage fails every call while it is on.
type outage struct {
	*memstore.Store
	on     atomic.Bool
	extend atomic.Bool // only renewals fail
}

var errDown = errors.New("database is down")

func (s *outage) Claim(ctx context.Context, r box.ClaimRequest) ([]*postroom.Message, error) {
	if s.on.Load() {
		return nil, errDown
	}
	return s.Store.Claim(ctx, r)
}

func (s *outage) Settle(ctx context.Context, tx postroom.Tx, r []box.Settlement) ([]box.Settled, error) {
	if s.on.Load() {
		return nil, errDown
	}
	return s.Store.Settle(ctx, tx, r)
}

func (s *outage) Extend(ctx context.Context, l []postroom.Lease, d time.Duration) ([]box.Extension, error) {
	if s.on.Load() || s.extend.Load() {
		return nil, errDown
	}
	return s.Store.Extend(ctx, l, d)
}

func (s *outage) Reap(ctx context.Context, r box.ReapRequest) ([]box.Reaped, error) {
	if s.on.Load() {
		return nil, errDown
	}
	return s.Store.Reap(ctx, r)
}

func TestALostLeaseEndsTheHandlersContextBeforeTheDatabaseSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &outage{Store: memstore.New(memstore.Options{})}
		f := openOn(t, store.Store, inbox.Options{})
		in := openBox(t, store, inbox.Options{}, f.logs)
		var cause error
		var ended time.Duration
		runs := 0
		_, stop := work(t, in, handling(func(ctx context.Context, _ *postroom.Message) error {
			if runs++; runs > 1 {
				return nil
			}
			began := time.Now()
			<-ctx.Done()
			ended, cause = time.Since(began), context.Cause(ctx)
			return ctx.Err()
		}), inbox.WorkerOptions{})
		store.extend.Store(true)
		f.receive(t, "1")
		time.Sleep(40 * time.Second)
		synctest.Wait()
		if ended == 0 || ended > inbox.DefaultLease || !errors.Is(cause, postroom.ErrLeaseLost) {
			t.Errorf("context ended after %s with %v", ended, cause)
		}
		store.extend.Store(false)
		time.Sleep(2 * time.Minute)
		ok(t, stop())
		r := f.record(t, "1")
		if r.State != postroom.StateDone || r.Done.Runs != 1 {
			t.Errorf("%s after %d runs; a run that was kept from finishing must cost nothing", r.State, r.Done.Runs)
		}
	})
}

func TestAnOutageOfTheDatabaseKillsNoMessageAndIsSurvived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &outage{Store: memstore.New(memstore.Options{})}
		l := &logs{}
		in := openBox(t, store, inbox.Options{}, l)
		f := openOn(t, store.Store, inbox.Options{})
		var running sync.Map
		mux := handling(func(ctx context.Context, m *postroom.Message) error {
			if _, twice := running.LoadOrStore(m.ID, true); twice {
				t.Errorf("message %s runs twice at once", m.ID)
			}
			defer running.Delete(m.ID)
			select {
			case <-time.After(20 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		_, stop := work(t, in, mux, inbox.WorkerOptions{})
		for i := range 30 {
			f.receive(t, fmt.Sprint(i))
		}
		for range 6 {
			time.Sleep(10 * time.Second)
			store.on.Store(true)
			time.Sleep(2 * time.Minute)
			store.on.Store(false)
		}
		time.Sleep(10 * time.Minute)
		ok(t, stop())
		for i := range 30 {
			f.wantState(t, fmt.Sprint(i), postroom.StateDone)
		}
		if n := f.total(t, box.CountLost); n != 0 {
			t.Errorf("%d leases counted as lost", n)
		}
	})
}

func TestNothingIsReapedWithinALeaseAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &outage{Store: memstore.New(memstore.Options{})}
		f := openOn(t, store.Store, inbox.Options{})
		in := openBox(t, store, inbox.Options{}, f.logs)
		_, stop := work(t, in, handling(func(context.Context, *postroom.Message) error {
			time.Sleep(85 * time.Second) // and ignores that its context ends
			return nil
		}), inbox.WorkerOptions{})
		f.receive(t, "1")
		time.Sleep(5 * time.Second)
		store.on.Store(true)
		time.Sleep(time.Minute)
		store.on.Store(false)
		time.Sleep(time.Minute)
		ok(t, stop())
		if n := len(f.logs.with("lease was lost", "lost=1")); n != 0 {
			t.Errorf("%d leases were reaped", n)
		}
		if r := f.record(t, "1"); r.State != postroom.StateDone || r.Done.Runs != 1 {
			t.Errorf("%s after %d runs: the late ack must count", r.State, r.Done.Runs)
		}
	})
}

func TestIBX078_a_process_never_runs_a_message_twice_at_once(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &outage{Store: memstore.New(memstore.Options{})}
		f := openOn(t, store.Store, inbox.Options{})
		in := openBox(t, store, inbox.Options{}, f.logs)
		var now, runs atomic.Int32
		_, stop := work(t, in, handling(func(ctx context.Context, _ *postroom.Message) error {
			if now.Add(1) > 1 {
				t.Error("IBX-078: two runs at once")
			}
			defer now.Add(-1)
			if runs.Add(1) == 1 {
				store.extend.Store(true)
				time.Sleep(5 * time.Minute) // and ignores that its context ends
				store.extend.Store(false)
			}
			return nil
		}), inbox.WorkerOptions{})
		f.receive(t, "1")
		time.Sleep(45 * time.Second)
		// Another process ends the lease and makes it ready; this one claims it.
		n, err := f.Reap(t.Context())
		if err != nil || n != 1 {
			t.Fatalf("reaped %d, %v", n, err)
		}
		time.Sleep(10 * time.Minute)
		ok(t, stop())
		f.wantState(t, "1", postroom.StateDone)
	})
}

func TestShutdownLetsHandlersFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		_, stop := work(t, f.Inbox, handling(func(ctx context.Context, _ *postroom.Message) error {
			time.Sleep(10 * time.Second)
			return ctx.Err()
		}), inbox.WorkerOptions{Concurrency: 2})
		f.receive(t, "1", "2", "3")
		synctest.Wait()
		began := time.Now()
		ok(t, stop())
		if d := time.Since(began); d != 10*time.Second {
			t.Errorf("stopped after %s", d)
		}
		f.wantState(t, "1", postroom.StateDone)
		if r := f.record(t, "3"); r.Stage != postroom.StageReady || r.Attempt != 0 {
			t.Errorf("message 3 is %s with attempt %d", r.Stage, r.Attempt)
		}
	})
}

func TestShutdownIsBoundedAndReleasesAtNoCost(t *testing.T) {
	for _, c := range []struct {
		name string
		halt bool
		want time.Duration
	}{{"drain timeout", false, 20 * time.Second}, {"second cancellation", true, 3 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			f := open(t, inbox.Options{})
			var cause error
			w, stop := work(t, f.Inbox, handling(func(ctx context.Context, _ *postroom.Message) error {
				<-ctx.Done()
				cause = context.Cause(ctx)
				return ctx.Err()
			}), inbox.WorkerOptions{})
			f.receive(t, "1")
			synctest.Wait()
			if c.halt {
				time.AfterFunc(c.want, w.Halt)
			}
			began := time.Now()
			ok(t, stop())
			if d := time.Since(began); d != c.want || !errors.Is(cause, box.ErrStopping) {
				t.Errorf("%s: stopped after %s, cause %v", c.name, d, cause)
			}
			if r := f.record(t, "1"); r.Stage != postroom.StageReady || r.Attempt != 0 || r.Lost != 0 {
				t.Errorf("%s: %s with attempt %d and %d lost", c.name, r.Stage, r.Attempt, r.Lost)
			}
		})
	}
}

func TestShutdownReportsHandlersThatDoNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		_, stop := work(t, f.Inbox, handling(func(context.Context, *postroom.Message) error {
			time.Sleep(time.Hour)
			return nil
		}), inbox.WorkerOptions{})
		f.receive(t, "1")
		synctest.Wait()
		if err := stop(); err == nil {
			t.Error("no error")
		}
		time.Sleep(time.Hour)
	})
}

func TestATimeoutIsARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		_, stop := work(t, f.Inbox, handling(func(ctx context.Context, _ *postroom.Message) error {
			<-ctx.Done()
			return ctx.Err()
		}), inbox.WorkerOptions{HandlerTimeout: time.Second})
		f.receive(t, "1")
		time.Sleep(time.Second + time.Millisecond)
		if r := f.record(t, "1"); r.Attempt != 1 || r.LastError != "handler took too long: context deadline exceeded" {
			t.Errorf("attempt %d, error %q", r.Attempt, r.LastError)
		}
		ok(t, stop())
	})
}

func TestSuspectsRunAloneAlsoUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		f.receive(t, "suspect")
		for range box.SuspectAt {
			f.claim(t, 1)
			time.Sleep(inbox.DefaultLease)
			_, err := f.Reap(t.Context())
			ok(t, err)
			time.Sleep(time.Minute)
		}
		if r := f.record(t, "suspect"); r.Stage != postroom.StageSuspect {
			t.Fatalf("it is %s after %d", r.Stage, r.Lost)
		}
		var now atomic.Int32
		n := 0
		ran := false
		mux := handling(func(ctx context.Context, m *postroom.Message) error {
			others := now.Add(1)
			defer now.Add(-1)
			if m.ID == "suspect" {
				ran = true
				if others != 1 {
					t.Errorf("the suspect runs beside %d others", others-1)
				}
			}
			time.Sleep(time.Second)
			if m.ID == "suspect" && now.Load() != 1 {
				t.Errorf("%d others joined the suspect", now.Load()-1)
			}
			return nil
		})
		_, stop := work(t, f.Inbox, mux, inbox.WorkerOptions{Concurrency: 3})
		for range 300 {
			for range 2 {
				n++
				f.receive(t, fmt.Sprint(n))
			}
			time.Sleep(500 * time.Millisecond)
		}
		if !ran {
			t.Error("a busy worker never ran the suspect")
		}
		f.wantState(t, "suspect", postroom.StateDone)
		ok(t, stop())
	})
}

func TestGroupsRunInOrderOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		var mu sync.Mutex
		order := map[string][]string{}
		busy := map[string]bool{}
		mux := handling(func(_ context.Context, m *postroom.Message) error {
			mu.Lock()
			if busy[m.Group] {
				t.Errorf("two of group %s at once", m.Group)
			}
			busy[m.Group] = true
			mu.Unlock()
			time.Sleep(100 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			busy[m.Group] = false
			if m.ID == "a3" && m.Attempt == 0 {
				return postroom.RetryAfter(2*time.Second, errors.New("again"))
			}
			order[m.Group] = append(order[m.Group], m.ID)
			return nil
		})
		began := time.Now()
		_, stop := work(t, f.Inbox, mux, inbox.WorkerOptions{})
		for i := range 10 {
			for _, g := range []string{"a", "b", "c"} {
				m := message(fmt.Sprint(g, i))
				m.Group = g
				_, err := f.Receive(t.Context(), m)
				ok(t, err)
			}
		}
		synctest.Wait()
		done := func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(order["b"]) == 10
		}
		for !done() && time.Since(began) < time.Minute {
			time.Sleep(50 * time.Millisecond)
		}
		if d := time.Since(began); d > 2*time.Second {
			t.Errorf("ten of a group took %s: the next must go at once", d)
		}
		time.Sleep(10 * time.Second)
		ok(t, stop())
		for _, g := range []string{"a", "b", "c"} {
			for i, id := range order[g] {
				if id != fmt.Sprint(g, i) {
					t.Errorf("group %s ran %v", g, order[g])
					break
				}
			}
			if len(order[g]) != 10 {
				t.Errorf("group %s ran %d", g, len(order[g]))
			}
		}
	})
}

func TestPausedTopicsWaitInAllWorkersUntilResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		var ran atomic.Int32
		mux := handling(func(context.Context, *postroom.Message) error {
			ran.Add(1)
			return nil
		})
		_, stop := work(t, f.Inbox, mux, inbox.WorkerOptions{})
		_, stopOther := work(t, openOn(t, f.store, inbox.Options{}).Inbox, mux, inbox.WorkerOptions{})
		ok(t, f.Pause(t.Context(), "order.paid", inbox.Order{Actor: "ann", Reason: "bug"}))
		time.Sleep(10 * time.Second)
		f.receive(t, "1", "2")
		time.Sleep(time.Minute)
		if n := ran.Load(); n != 0 {
			t.Errorf("%d ran while paused", n)
		}
		if r := f.record(t, "1"); r.Stage != postroom.StageParked || r.Attempt != 0 {
			t.Errorf("message is %s, attempt %d", r.Stage, r.Attempt)
		}
		ok(t, f.Resume(t.Context(), "order.paid", inbox.Order{Actor: "ann"}))
		time.Sleep(20 * time.Second)
		if n := ran.Load(); n != 2 {
			t.Errorf("%d ran after the topic went on, want 2", n)
		}
		ok(t, stop())
		ok(t, stopOther())
	})
}

func TestARetryDoesNotWaitForThePoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		var runs []time.Time
		var mu sync.Mutex
		_, stop := work(t, f.Inbox, handling(func(_ context.Context, m *postroom.Message) error {
			mu.Lock()
			defer mu.Unlock()
			runs = append(runs, time.Now())
			if len(runs)%2 == 1 {
				return postroom.RetryAfter(200*time.Millisecond, errors.New("not yet"))
			}
			return nil
		}), inbox.WorkerOptions{Poll: 5 * time.Second, MaxPoll: time.Minute})
		for i := range 2 {
			f.receive(t, fmt.Sprint(i))
			time.Sleep(10 * time.Minute) // long enough for polls to be rare
		}
		mu.Lock()
		defer mu.Unlock()
		for i := 0; i+1 < len(runs); i += 2 {
			if d := runs[i+1].Sub(runs[i]); d > 300*time.Millisecond {
				t.Errorf("a retry after 200 ms came after %v", d)
			}
		}
		if len(runs) != 4 {
			t.Errorf("%d runs", len(runs))
		}
		ok(t, stop())
	})
}

func TestIBX072_the_worker_reaps_by_itself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		f.receive(t, "1")
		_, err := f.Claim(t.Context(), inbox.ClaimOptions{Owner: "a process that dies", Lease: time.Minute, Limit: 1})
		ok(t, err)
		var handled time.Time
		start := time.Now()
		_, stop := work(t, f.Inbox, handling(func(context.Context, *postroom.Message) error {
			handled = time.Now()
			return nil
		}), inbox.WorkerOptions{})
		time.Sleep(10 * time.Minute)
		ok(t, stop())
		f.wantState(t, "1", postroom.StateDone)
		// Its lease, the reaper's interval, and a poll.
		if d := handled.Sub(start); d < time.Minute || d > 2*time.Minute {
			t.Errorf("the message of the dead process was handled after %v", d)
		}
	})
}

func TestIBX124_an_idle_worker_polls_less_and_less(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var claims []time.Time
		f := open(t, inbox.Options{Observer: &postroom.Observer{
			Claimed: func(context.Context, postroom.ClaimedEvent) {
				mu.Lock()
				defer mu.Unlock()
				claims = append(claims, time.Now())
			},
		}})
		_, stop := work(t, f.Inbox, handling(func(context.Context, *postroom.Message) error { return nil }), inbox.WorkerOptions{})
		time.Sleep(time.Hour)
		ok(t, stop())
		if n := len(claims); n < 600 || n > 2*800 {
			t.Errorf("%d claims in an idle hour, want about one every 5 s (and one for suspects)", n)
		}
	})
}

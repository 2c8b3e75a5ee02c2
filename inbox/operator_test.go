package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/memstore"
)

func guardPut(release bool) box.Put {
	return box.Put{Mode: box.Guard, Message: message("1"), Owner: "gone", Lease: inbox.DefaultLease, ReleaseOnError: release}
}

// kill makes n messages dead.
func (f *fixture) kill(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		f.receive(t, fmt.Sprint(i))
	}
	for _, m := range f.claim(t, n) {
		ok(t, f.Fail(t.Context(), m.Lease, errors.New("bad")))
	}
}

func TestDeadLettersAreListedByPagesAndRequeued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		f.kill(t, 7)
		ids := ""
		for r, err := range f.All(t.Context(), inbox.Filter{State: postroom.StateDead, Limit: 3}) {
			ok(t, err)
			ids += r.ID
		}
		if ids != "0123456" {
			t.Errorf("listed %s", ids)
		}
		by := inbox.Order{Actor: "ann", Reason: "fixed", Delay: time.Minute}
		ok(t, f.Requeue(t.Context(), "shop", "0", by))
		n, err := f.RequeueAll(t.Context(), inbox.Filter{Topic: "order.paid"}, inbox.Order{Actor: "ann"})
		if err != nil || n != 6 {
			t.Errorf("requeued %d, %v", n, err)
		}
		if r := f.record(t, "0"); r.Stage != postroom.StageScheduled || time.Until(r.NextAt) != time.Minute || r.Attempt != 0 {
			t.Errorf("requeued with a delay: stage %s, next in %s, attempt %d", r.Stage, time.Until(r.NextAt), r.Attempt)
		}
		audit, err := f.Audit(t.Context(), inbox.AuditFilter{})
		if err != nil || len(audit) != 7 || audit[6].Actor != "ann" || audit[6].Reason != "fixed" {
			t.Errorf("audit is %v, %v", audit, err)
		}
		if got := len(f.claim(t, 10)); got != 6 {
			t.Errorf("claimed %d, want 6", got)
		}
	})
}

func TestOperatorErrors(t *testing.T) {
	f := open(t, inbox.Options{})
	ctx := t.Context()
	wantErr(t, f.Requeue(ctx, "shop", "none", inbox.Order{}), postroom.ErrNotFound)
	wantArgument(t, f.Requeue(ctx, "", "none", inbox.Order{}), "source")
	wantArgument(t, f.Requeue(ctx, "shop", "x", inbox.Order{Delay: -1}), "delay")
	f.receive(t, "1")
	ok(t, f.Requeue(ctx, "shop", "1", inbox.Order{}))
	m := f.claim(t, 1)[0]
	wantErr(t, f.Requeue(ctx, "shop", "1", inbox.Order{}), postroom.ErrLeased)
	wantErr(t, f.Discard(ctx, "shop", "1", inbox.Order{}), postroom.ErrLeased)
	ok(t, f.Ack(ctx, m.Lease))
	wantErr(t, f.Requeue(ctx, "shop", "1", inbox.Order{}), postroom.ErrDone)
	ok(t, f.Replay(ctx, "shop", "1", inbox.Order{Actor: "ann"}))
	f.wantState(t, "1", postroom.StateProcessing)
	ok(t, f.Discard(ctx, "shop", "1", inbox.Order{Reason: "no"}))
	if r := f.record(t, "1"); !r.Done.Discarded || r.Done.Note != "no" {
		t.Errorf("done is %+v", r.Done)
	}
	_, err := f.List(ctx, inbox.Filter{Limit: 1001})
	wantArgument(t, err, "limit")
	wantArgument(t, f.Pause(ctx, "", inbox.Order{}), "topic")
}

func TestIBX100_cleanup_by_retention(t *testing.T) {
	day := 24 * time.Hour
	for _, c := range []struct {
		name              string
		payloads, records time.Duration
		age               time.Duration
		want              inbox.CleanupResult
	}{
		{"nothing before 30 days", 0, 0, 30*day - time.Second, inbox.CleanupResult{}},
		{"all after 30 days", 0, 0, 30 * day, inbox.CleanupResult{Records: 1500}},
		{"payloads apart", day, 0, day, inbox.CleanupResult{Payloads: 1500}},
		{"for ever", inbox.Forever, inbox.Forever, 1000 * day, inbox.CleanupResult{}},
		{"records for ever", day, inbox.Forever, 1000 * day, inbox.CleanupResult{Payloads: 1500}},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := open(t, inbox.Options{PayloadRetention: c.payloads, RecordRetention: c.records})
			msgs := make([]postroom.Message, 1500)
			for i := range msgs {
				msgs[i] = message(fmt.Sprint(i))
			}
			_, err := f.ReceiveAll(t.Context(), msgs)
			ok(t, err)
			for _, m := range f.claim(t, 1500) {
				ok(t, f.Ack(t.Context(), m.Lease))
			}
			time.Sleep(c.age)
			got, err := f.Cleanup(t.Context())
			if err != nil || got.Payloads != c.want.Payloads || got.Records != c.want.Records {
				t.Errorf("%s: got %+v, %v; want %+v", c.name, got, err, c.want)
			}
		})
	}
}

// flaky fails its first cleanup.
type flaky struct {
	*memstore.Store
	calls int
}

func (s *flaky) Cleanup(ctx context.Context, req box.CleanupRequest) (box.CleanupResult, error) {
	if s.calls++; s.calls == 1 {
		return box.CleanupResult{}, errors.New("no disk")
	}
	return s.Store.Cleanup(ctx, req)
}

func TestAFailedCleanupIsLoggedAndTheNextOneRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, l := &flaky{Store: memstore.New(memstore.Options{})}, &logs{}
		in := openBox(t, store, inbox.Options{}, l)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- in.RunCleanup(ctx) }()
		time.Sleep(3*time.Hour + time.Minute)
		cancel()
		ok(t, <-done)
		if store.calls != 4 || len(l.with("level=ERROR", "cleanup failed", "no disk")) != 1 {
			t.Errorf("%d passes, logs\n%s", store.calls, l)
		}
	})
}

func TestIBX127_nothing_secret_reaches_logs_or_errors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const secret = "canary"
		f := open(t, inbox.Options{LogMessages: true})
		secretive := func(id string) postroom.Message {
			m := message(id)
			m.Payload = []byte(`{"card":"` + secret + `"}`)
			m.Headers = map[string]string{"authorization": secret, secret: "x"}
			m.Hash, m.HashAlg = []byte(secret), "x-test"
			return m
		}
		ctx := t.Context()
		var errs []error
		keep := func(_ any, err error) { errs = append(errs, err) }
		keep(f.Receive(ctx, secretive("1")))
		keep(f.ReceiveAll(ctx, []postroom.Message{secretive("1"), secretive("2"), secretive("")}))
		other := secretive("2")
		other.Hash = []byte(secret + "2")
		keep(f.Receive(ctx, other))
		keep(f.AlreadyProcessed(ctx, "shop", "2", []byte(secret)))
		big := secretive("3")
		big.Payload = []byte(strings.Repeat(secret, 1<<18))
		keep(f.Receive(ctx, big))
		bad := secretive("4")
		bad.Headers["x"] = secret + "\x00"
		keep(f.Receive(ctx, bad))
		long := secretive("5")
		long.Hash = []byte(strings.Repeat(secret, 100))
		keep(f.Receive(ctx, long))
		keep(f.Once(ctx, secretive("6"), nothing, inbox.OnceOptions{}))
		keep(f.Guard(ctx, secretive("7"), panics, inbox.GuardOptions{}))
		for _, m := range f.claim(t, 10) {
			keep(nil, f.Abandon(ctx, m.Lease, 0, errors.New("x")))
		}
		mux := inbox.NewMux()
		ok(t, mux.HandleFunc("panics", panics))
		ok(t, mux.Handle("json", inbox.JSON(func(context.Context, []int) error { return nil })))
		ok(t, mux.Handle("tx", postroom.TxHandlerFunc(nothing)))
		ok(t, mux.HandleBatch("batch", func(context.Context, postroom.Tx, []*postroom.Message) ([]error, error) {
			return []error{errors.New("x")}, nil
		}, inbox.HandlerOptions{}))
		for _, topic := range []string{"panics", "json", "tx", "batch", "unhandled"} {
			m := secretive("worker " + topic)
			m.Topic = topic
			keep(f.Receive(ctx, m))
		}
		keep(nil, inbox.NewWorker(f.Inbox, mux, inbox.WorkerOptions{}).RunUntilIdle(ctx))
		for r, err := range f.All(ctx, inbox.Filter{}) {
			keep(nil, err)
			keep(nil, errors.New(r.LastError))
		}
		for _, err := range errs {
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("in an error: %v", err)
			}
		}
		if lines := f.logs.with(secret); len(lines) != 0 {
			t.Errorf("in the log: %s", lines)
		}
		if len(f.logs.with("id=1")) == 0 || len(f.logs.with("worker batch")) == 0 {
			t.Error("the log is empty: nothing was tested")
		}
	})
}

func TestIBX107_108_109_113_log_lines(t *testing.T) {
	f := open(t, inbox.Options{})
	_, err := f.AlreadyProcessed(t.Context(), "shop", "1", nil)
	ok(t, err)
	f.receive(t, "1")
	_, err = f.ReceiveAll(t.Context(), []postroom.Message{message("1"), message("2"), message("3")})
	ok(t, err)
	f.claim(t, 2)
	for _, want := range [][]string{
		{"level=DEBUG", `"duplicate check"`, "processed=false", "source=shop", "id=1"},
		{"level=INFO", `"message received"`, "topic=order.paid", "source=shop", "id=1", "outcome=accepted"},
		{"level=INFO", `"messages received"`, "messages=3", "accepted=2", "duplicate=1"},
		{"level=DEBUG", `"message received"`, "id=3"},
		{"level=DEBUG", `"messages claimed"`, "messages=2"},
	} {
		if n := len(f.logs.with(append(want, "consumer=orders", "store=memory")...)); n != 1 {
			t.Errorf("%d lines with %v, want 1, in\n%s", n, want, f.logs)
		}
	}
}

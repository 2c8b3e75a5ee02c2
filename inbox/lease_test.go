package inbox_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
)

func TestIBX040_lease_must_be_positive(t *testing.T) {
	f := open(t, inbox.Options{})
	for _, d := range []time.Duration{0, -1} {
		_, err := f.Claim(t.Context(), inbox.ClaimOptions{Owner: "a", Lease: d, Limit: 1})
		wantArgument(t, err, "lease")
	}
}

func TestIBX041_limit_must_be_positive(t *testing.T) {
	f := open(t, inbox.Options{})
	for _, n := range []int{0, -1} {
		_, err := f.Claim(t.Context(), inbox.ClaimOptions{Owner: "a", Lease: time.Minute, Limit: n})
		wantArgument(t, err, "limit")
	}
}

func TestIBX043_and_130_owner_is_required(t *testing.T) {
	f := open(t, inbox.Options{})
	ctx := t.Context()
	_, err := f.Claim(ctx, inbox.ClaimOptions{Lease: time.Minute, Limit: 1})
	wantArgument(t, err, "owner")
	none := postroom.Lease{Seq: 1, Fence: 1}
	wantArgument(t, f.Ack(ctx, none), "owner")
	wantArgument(t, f.Abandon(ctx, none, 0, nil), "owner")
	wantArgument(t, f.Fail(ctx, none, errors.New("x")), "owner")
	wantArgument(t, f.Release(ctx, none, 0), "owner")
	_, err = f.Extend(ctx, none, time.Minute)
	wantArgument(t, err, "owner")
}

func TestIBX048_059_066_nil_is_refused_and_empty_does_nothing(t *testing.T) {
	f := open(t, inbox.Options{})
	ctx := t.Context()
	cause := errors.New("x")
	for name, settle := range map[string]func([]postroom.Lease) (int, error){
		"ack":     func(l []postroom.Lease) (int, error) { r, err := f.AckAll(ctx, l); return len(r), err },
		"abandon": func(l []postroom.Lease) (int, error) { r, err := f.AbandonAll(ctx, l, 0, nil); return len(r), err },
		"fail":    func(l []postroom.Lease) (int, error) { r, err := f.FailAll(ctx, l, cause); return len(r), err },
		"release": func(l []postroom.Lease) (int, error) { r, err := f.ReleaseAll(ctx, l, 0); return len(r), err },
		"extend":  func(l []postroom.Lease) (int, error) { r, err := f.ExtendAll(ctx, l, time.Minute); return len(r), err },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := settle(nil)
			wantArgument(t, err, "leases")
			if n, err := settle([]postroom.Lease{}); n != 0 || err != nil {
				t.Errorf("an empty batch gives %d results and %v", n, err)
			}
		})
	}
}

func TestIBX058_negative_delay_is_refused_and_zero_is_the_backoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		f.receive(t, "1")
		m := f.claim(t, 1)[0]
		wantArgument(t, f.Abandon(t.Context(), m.Lease, -time.Second, nil), "delay")
		ok(t, f.Abandon(t.Context(), m.Lease, 0, errors.New("down")))
		r := f.record(t, "1")
		if d := time.Until(r.NextAt); d != 2*time.Second || r.Attempt != 1 || r.LastError != "down" {
			t.Errorf("next run in %s, attempt %d, error %q", d, r.Attempt, r.LastError)
		}
	})
}

func TestIBX067_cause_of_a_failure_is_required(t *testing.T) {
	f := open(t, inbox.Options{})
	wantArgument(t, f.Fail(t.Context(), postroom.Lease{Owner: "a"}, nil), "cause")
}

func TestIBX119_120_unusual_leases_and_batches_are_warned_of_once(t *testing.T) {
	f := open(t, inbox.Options{})
	for range 3 {
		_, err := f.Claim(t.Context(), inbox.ClaimOptions{Owner: "a", Lease: 9 * time.Second, Limit: 101})
		ok(t, err)
	}
	for _, text := range []string{"lease is outside", "batch is larger"} {
		if n := len(f.logs.with("level=WARN", text)); n != 1 {
			t.Errorf("%d warnings %q, want 1", n, text)
		}
	}
}

func TestIBX046_055_063_batches_report_which_leases_took_effect(t *testing.T) {
	f := open(t, inbox.Options{})
	f.receive(t, "1", "2", "3")
	ctx := t.Context()
	msgs := f.claim(t, 3)
	stale := msgs[0].Lease
	stale.Fence--
	applied, err := f.AckAll(ctx, []postroom.Lease{stale, msgs[1].Lease})
	if err != nil || applied[0] || !applied[1] {
		t.Errorf("ack gives %v, %v", applied, err)
	}
	wantErr(t, f.Ack(ctx, stale), postroom.ErrLeaseLost)
	wantErr(t, f.Abandon(ctx, stale, 0, nil), postroom.ErrLeaseLost)
	wantErr(t, f.Fail(ctx, stale, errors.New("x")), postroom.ErrLeaseLost)
	wantErr(t, f.Release(ctx, stale, 0), postroom.ErrLeaseLost)
	_, err = f.Extend(ctx, stale, time.Minute)
	wantErr(t, err, postroom.ErrLeaseLost)

	l, err := f.Extend(ctx, msgs[0].Lease, 2*time.Minute)
	if err != nil || !l.Until.After(msgs[0].Lease.Until) {
		t.Errorf("extend gives %v, %v", l, err)
	}
	ok(t, f.Fail(ctx, l, errors.New("bad")))
	ok(t, f.Release(ctx, msgs[2].Lease, 0))
	f.wantState(t, "1", postroom.StateDead)
	f.wantState(t, "2", postroom.StateDone)
	if r := f.record(t, "3"); r.Attempt != 0 || r.Stage != postroom.StageReady {
		t.Errorf("released message has attempt %d, stage %s", r.Attempt, r.Stage)
	}
}

func TestAckTxCommitsWithTheCaller(t *testing.T) {
	f := open(t, inbox.Options{})
	f.receive(t, "1")
	m := f.claim(t, 1)[0]
	tx, err := f.store.Begin(t.Context())
	ok(t, err)
	ok(t, f.AckTx(t.Context(), tx, m.Lease))
	wantErr(t, f.AckTx(t.Context(), tx, m.Lease), postroom.ErrLeaseLost)
	ok(t, tx.Rollback(t.Context()))
	f.wantState(t, "1", postroom.StateProcessing)
}

func TestIBX112_reaping_is_logged_and_counted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		f.receive(t, "1", "2")
		f.claim(t, 2)
		time.Sleep(inbox.DefaultLease)
		n, err := f.Reap(t.Context())
		if err != nil || n != 2 {
			t.Fatalf("reaped %d, %v", n, err)
		}
		if len(f.logs.with("level=INFO", "leases reaped", "messages=2", "consumer=orders", "store=memory")) != 1 {
			t.Errorf("no line in\n%s", f.logs)
		}
		if n := f.total(t, "lost"); n != 2 {
			t.Errorf("%d lost leases counted, want 2", n)
		}
	})
}

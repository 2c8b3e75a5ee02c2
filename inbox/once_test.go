package inbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/memstore"
)

func nothing(context.Context, postroom.Tx, *postroom.Message) error { return nil }

func TestOnceRunsTheFirstDeliveryOnly(t *testing.T) {
	f := open(t, inbox.Options{})
	runs := 0
	handle := func(ctx context.Context, tx postroom.Tx, m *postroom.Message) error {
		runs++
		if got, found := inbox.TxFrom(ctx); !found || got != tx {
			t.Error("the context has no transaction")
		}
		if got, found := inbox.MessageFrom(ctx); !found || got != m {
			t.Error("the context has no message")
		}
		_, err := f.ReceiveTx(ctx, tx, message("follow-up"))
		return err
	}
	for _, want := range []postroom.Outcome{postroom.Accepted, postroom.Duplicate} {
		res, err := f.Once(t.Context(), message("1"), handle, inbox.OnceOptions{Handler: "pay"})
		if err != nil || res.Outcome != want || res.State != postroom.StateDone {
			t.Errorf("got %+v, %v; want %s", res, err, want)
		}
	}
	if runs != 1 {
		t.Errorf("the handler ran %d times", runs)
	}
	if name := f.record(t, "1").Done.Handler; name != "pay" {
		t.Errorf("handler %q is recorded", name)
	}
	f.wantState(t, "follow-up", postroom.StateProcessing)
}

func TestOnceRecordsTheFunctionAsHandlerByDefault(t *testing.T) {
	f := open(t, inbox.Options{})
	_, err := f.Once(t.Context(), message("1"), nothing, inbox.OnceOptions{})
	ok(t, err)
	if name := f.record(t, "1").Done.Handler; !strings.HasSuffix(name, ".nothing") {
		t.Errorf("handler %q is recorded", name)
	}
	tx, err := f.store.Begin(t.Context())
	ok(t, err)
	first, err := f.OnceTx(t.Context(), tx, message("2"))
	if err != nil || !first {
		t.Errorf("got %v, %v", first, err)
	}
	again, err := f.OnceTx(t.Context(), tx, message("2"))
	if err != nil || again {
		t.Errorf("got %v, %v for the second", again, err)
	}
	ok(t, tx.Commit(t.Context()))
	if name := f.record(t, "2").Done.Handler; !strings.Contains(name, "TestOnceRecords") {
		t.Errorf("handler %q is recorded", name)
	}
}

func TestOnceRollsBackWithTheHandler(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name    string
		verdict func() error
		want    error
		state   postroom.State
	}{
		{"error", func() error { return boom }, boom, postroom.StateNone},
		{"panic", func() error { panic(boom) }, boom, postroom.StateNone},
		{"retry after", func() error { return postroom.RetryAfter(time.Hour, boom) }, boom, postroom.StateNone},
		{"permanent", func() error { return postroom.Permanent(boom) }, boom, postroom.StateDead},
		{"discard", func() error { return postroom.Discard("stale") }, nil, postroom.StateDone},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := open(t, inbox.Options{})
			res, err := f.Once(t.Context(), message("1"), func(ctx context.Context, tx postroom.Tx, _ *postroom.Message) error {
				_, err := f.ReceiveTx(ctx, tx, message("write"))
				ok(t, err)
				return c.verdict()
			}, inbox.OnceOptions{})
			if !errors.Is(err, c.want) || !errors.Is(res.Err, c.want) {
				t.Errorf("got %v and %v, want %v", err, res.Err, c.want)
			}
			f.wantState(t, "write", postroom.StateNone)
			f.wantState(t, "1", c.state)
			if r := f.record(t, "1"); c.name == "discard" && (!r.Done.Discarded || r.Done.Note != "stale") {
				t.Errorf("done is %+v", r.Done)
			}
		})
	}
}

func TestOnceRefusesDeadAndLeasedMessages(t *testing.T) {
	f := open(t, inbox.Options{})
	f.receive(t, "dead", "leased", "waiting")
	for _, m := range f.claim(t, 2) {
		if m.ID == "dead" {
			ok(t, f.Fail(t.Context(), m.Lease, errors.New("x")))
		}
	}
	for id, want := range map[string]error{"dead": postroom.ErrDead, "leased": postroom.ErrInProgress, "waiting": nil} {
		res, err := f.Once(t.Context(), message(id), nothing, inbox.OnceOptions{})
		if !errors.Is(err, want) || !errors.Is(res.Err, want) {
			t.Errorf("%s: got %v and %v, want %v", id, err, res.Err, want)
		}
	}
}

// commits decides what becomes of each commit.
type commits struct {
	*memstore.Store
	commit func(box.Transaction, context.Context) error
}

type commitTx struct {
	*memstore.Tx
	commit func(box.Transaction, context.Context) error
}

func (s commits) Begin(ctx context.Context) (box.Transaction, error) {
	tx, err := s.Store.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return commitTx{tx.(*memstore.Tx), s.commit}, nil
}

func (s commits) Put(ctx context.Context, tx postroom.Tx, puts []box.Put) ([]box.PutResult, error) {
	return s.Store.Put(ctx, inner(tx), puts)
}

func (s commits) Settle(ctx context.Context, tx postroom.Tx, settlements []box.Settlement) ([]box.Settled, error) {
	return s.Store.Settle(ctx, inner(tx), settlements)
}

func inner(tx postroom.Tx) postroom.Tx {
	if c, wrapped := tx.(commitTx); wrapped {
		return c.Tx
	}
	return tx
}

func (t commitTx) Commit(ctx context.Context) error { return t.commit(t.Tx, ctx) }

func TestOnceWithALostCommitAnswerIsUnknownAndDeduplicates(t *testing.T) {
	store := commits{memstore.New(memstore.Options{}), nil}
	store.commit = func(tx box.Transaction, ctx context.Context) error {
		_ = tx.Commit(ctx)
		return postroom.ErrUnknown
	}
	in := openBox(t, store, inbox.Options{}, &logs{})
	_, err := in.Once(t.Context(), message("1"), nothing, inbox.OnceOptions{})
	wantErr(t, err, postroom.ErrUnknown)
	f := openOn(t, store.Store, inbox.Options{})
	res, err := f.Once(t.Context(), message("1"), nothing, inbox.OnceOptions{})
	if err != nil || res.Outcome != postroom.Duplicate {
		t.Errorf("redelivery gives %+v, %v", res, err)
	}
}

func TestOnceRepeatsATransactionThatTheDatabaseGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		store := commits{memstore.New(memstore.Options{}), nil}
		store.commit = func(tx box.Transaction, ctx context.Context) error {
			if tries++; tries < 3 {
				_ = tx.Rollback(ctx)
				return postroom.ErrRetry
			}
			return tx.Commit(ctx)
		}
		in := openBox(t, store, inbox.Options{}, &logs{})
		runs := 0
		res, err := in.Once(t.Context(), message("1"), func(context.Context, postroom.Tx, *postroom.Message) error {
			runs++
			return nil
		}, inbox.OnceOptions{})
		if err != nil || res.Outcome != postroom.Accepted || runs != 3 {
			t.Errorf("got %+v, %v after %d runs", res, err, runs)
		}
	})
}

func TestDisabledPassesThrough(t *testing.T) {
	f := open(t, inbox.Options{Disabled: true})
	runs := 0
	for range 2 {
		_, err := f.Once(t.Context(), postroom.Message{}, func(context.Context, postroom.Tx, *postroom.Message) error {
			runs++
			return nil
		}, inbox.OnceOptions{})
		ok(t, err)
		_, err = f.Guard(t.Context(), message("1"), func(context.Context, *postroom.Message) error {
			runs++
			return nil
		}, inbox.GuardOptions{})
		ok(t, err)
		tx, err := f.store.Begin(t.Context())
		ok(t, err)
		first, err := f.OnceTx(t.Context(), tx, message("1"))
		if err != nil || !first {
			t.Errorf("OnceTx gives %v, %v", first, err)
		}
		ok(t, tx.Commit(t.Context()))
	}
	if runs != 4 {
		t.Errorf("%d runs, want 4", runs)
	}
	f.wantState(t, "1", postroom.StateNone)
}

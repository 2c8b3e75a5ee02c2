package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/memstore"
)

// transactional makes a mux with one transactional handler.
func transactional(h postroom.TxHandlerFunc) *inbox.Mux {
	mux := inbox.NewMux()
	_ = mux.Handle("order.*", h)
	return mux
}

func TestTransactionalHandlerCommitsItsWritesWithTheAck(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name    string
		verdict error
		state   postroom.State
		wrote   postroom.State
	}{
		{"success", nil, postroom.StateDone, postroom.StateProcessing},
		{"failure", boom, postroom.StateProcessing, postroom.StateNone},
		{"permanent", postroom.Permanent(boom), postroom.StateDead, postroom.StateNone},
		{"discard", postroom.Discard("old"), postroom.StateDone, postroom.StateNone},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := open(t, inbox.Options{})
			_, stop := work(t, f.Inbox, transactional(func(ctx context.Context, tx postroom.Tx, m *postroom.Message) error {
				_, err := f.ReceiveTx(ctx, tx, postroom.Message{Source: "shop", ID: "write", Topic: "other", Payload: []byte{}})
				ok(t, err)
				return c.verdict
			}), inbox.WorkerOptions{})
			f.receive(t, "1")
			synctest.Wait()
			f.wantState(t, "1", c.state)
			f.wantState(t, "write", c.wrote)
			ok(t, stop())
		})
	}
}

func TestTransactionalHandlerWhoseLeaseWasTakenChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		runs := 0
		_, stop := work(t, f.Inbox, transactional(func(ctx context.Context, tx postroom.Tx, m *postroom.Message) error {
			if runs++; runs == 1 {
				// Someone else has the message now, and this process has not noticed.
				ok(t, f.Release(ctx, m.Lease, time.Minute))
			}
			_, err := f.ReceiveTx(ctx, tx, message(fmt.Sprint("write by run ", runs)))
			return err
		}), inbox.WorkerOptions{})
		f.receive(t, "1")
		synctest.Wait()
		f.wantState(t, "1", postroom.StateProcessing)
		f.wantState(t, "write by run 1", postroom.StateNone)
		if r := f.record(t, "1"); r.Attempt != 0 {
			t.Errorf("attempt %d", r.Attempt)
		}
		ok(t, stop())
	})
}

func TestTransactionalHandlersOfASerialStoreRunOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		// Before the worker runs: its first handler keeps all writers out.
		f.receive(t, "1", "2", "3")
		var now, runs atomic.Int32
		_, stop := work(t, f.Inbox, transactional(func(ctx context.Context, tx postroom.Tx, m *postroom.Message) error {
			if now.Add(1) != 1 {
				t.Error("two at once")
			}
			defer now.Add(-1)
			runs.Add(1)
			_, err := f.ReceiveTx(ctx, tx, postroom.Message{Source: "shop", ID: "w" + m.ID, Topic: "other", Payload: []byte{}})
			// Holding the writer for longer than a lease is no reason to lose it.
			time.Sleep(2 * time.Minute)
			return errors.Join(err, ctx.Err())
		}), inbox.WorkerOptions{Concurrency: 3})
		// Another process has nothing to do but to reap. It looks every ten
		// seconds from here on, so that it waits for the writer when that goes on.
		time.Sleep(7 * time.Second)
		_, stopOther := work(t, openOn(t, f.store, inbox.Options{}).Inbox, inbox.NewMux(), inbox.WorkerOptions{})
		time.Sleep(15 * time.Minute)
		ok(t, stop())
		ok(t, stopOther())
		for _, id := range []string{"1", "2", "3"} {
			f.wantState(t, id, postroom.StateDone)
		}
		if runs.Load() != 3 {
			t.Errorf("%d runs, want 3", runs.Load())
		}
	})
}

func TestShutdownReleasesTransactionalHandlersThatHadNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		var runs atomic.Int32
		_, stop := work(t, f.Inbox, transactional(func(context.Context, postroom.Tx, *postroom.Message) error {
			runs.Add(1)
			time.Sleep(time.Second)
			return nil
		}), inbox.WorkerOptions{})
		f.receive(t, "1", "2", "3", "4")
		synctest.Wait()
		ok(t, stop())
		if runs.Load() != 1 {
			t.Errorf("%d runs", runs.Load())
		}
		s, err := f.Stats(t.Context())
		ok(t, err)
		for _, c := range s.Live {
			if c.Stage != postroom.StageReady || c.N != 3 {
				t.Errorf("%d are %s, want 3 ready", c.N, c.Stage)
			}
		}
	})
}

func TestALostCommitAnswerIsNotSettledOtherwise(t *testing.T) {
	for _, committed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var lose atomic.Bool
			lose.Store(true)
			store := commits{memstore.New(memstore.Options{}), nil}
			store.commit = func(tx box.Transaction, ctx context.Context) error {
				if !lose.Swap(false) {
					return tx.Commit(ctx)
				}
				if committed {
					_ = tx.Commit(ctx)
				} else {
					_ = tx.Rollback(ctx)
				}
				return postroom.ErrUnknown
			}
			f := openOn(t, store.Store, inbox.Options{})
			in := openBox(t, store, inbox.Options{}, f.logs)
			runs := 0
			_, stop := work(t, in, transactional(func(_ context.Context, _ postroom.Tx, m *postroom.Message) error {
				runs++
				if m.Attempt != 0 {
					t.Errorf("the doubt cost attempt %d", m.Attempt)
				}
				return nil
			}), inbox.WorkerOptions{})
			f.receive(t, "1")
			time.Sleep(2 * time.Minute)
			ok(t, stop())
			f.wantState(t, "1", postroom.StateDone)
			if n := f.total(t, box.CountDone) + total(t, in, box.CountDone); n != 2 {
				t.Errorf("committed %v: done is counted %d times in two overviews, want once in each", committed, n)
			}
			if want := map[bool]int{true: 1, false: 2}[committed]; runs != want {
				t.Errorf("committed %v: %d runs, want %d", committed, runs, want)
			}
		})
	}
}

func TestATransactionThatTheDatabaseGaveUpRunsAgainAtOnce(t *testing.T) {
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
		f := openOn(t, store.Store, inbox.Options{})
		in := openBox(t, store, inbox.Options{}, f.logs)
		_, stop := work(t, in, transactional(nothing), inbox.WorkerOptions{})
		f.receive(t, "1")
		time.Sleep(3 * time.Second)
		ok(t, stop())
		if r := f.record(t, "1"); r.State != postroom.StateDone || r.Done.Runs != 1 {
			t.Errorf("%s after %d runs", r.State, r.Done.Runs)
		}
	})
}

func TestBatchHandlerGetsManyAndGivesAnOutcomeForEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		f.receive(t, "0", "1", "2", "3", "4")
		calls := 0
		mux := inbox.NewMux()
		ok(t, mux.HandleBatch("order.*", func(ctx context.Context, tx postroom.Tx, msgs []*postroom.Message) ([]error, error) {
			if calls++; calls > 1 {
				return nil, nil
			}
			if len(msgs) != 5 {
				t.Errorf("%d messages in a call", len(msgs))
			}
			_, err := f.ReceiveTx(ctx, tx, postroom.Message{Source: "shop", ID: "write", Topic: "other", Payload: []byte{}})
			ok(t, err)
			outcomes := make([]error, len(msgs))
			for i, m := range msgs {
				switch m.ID {
				case "1":
					outcomes[i] = errors.New("later")
				case "2":
					outcomes[i] = postroom.Permanent(errors.New("never"))
				case "3":
					outcomes[i] = postroom.Discard("no need")
				}
			}
			return outcomes, nil
		}, inbox.HandlerOptions{Name: "sums"}))
		ok(t, inbox.NewWorker(f.Inbox, mux, inbox.WorkerOptions{}).RunUntilIdle(t.Context()))
		f.wantState(t, "write", postroom.StateProcessing)
		for id, want := range map[string]postroom.State{
			"0": postroom.StateDone, "1": postroom.StateProcessing, "2": postroom.StateDead, "3": postroom.StateDone, "4": postroom.StateDone,
		} {
			f.wantState(t, id, want)
		}
		if r := f.record(t, "1"); r.Attempt != 1 || r.LastError != "later" {
			t.Errorf("attempt %d, error %q", r.Attempt, r.LastError)
		}
		if r := f.record(t, "0"); r.Done.Handler != "sums" {
			t.Errorf("handler %q", r.Done.Handler)
		}
	})
}

func TestBatchHandlerThatFailsRollsAllBack(t *testing.T) {
	for name, h := range map[string]inbox.BatchHandler{
		"error": func(context.Context, postroom.Tx, []*postroom.Message) ([]error, error) {
			return nil, errors.New("all")
		},
		"panic":    func(context.Context, postroom.Tx, []*postroom.Message) ([]error, error) { panic("all") },
		"miscount": func(context.Context, postroom.Tx, []*postroom.Message) ([]error, error) { return []error{nil}, nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			f := open(t, inbox.Options{})
			f.receive(t, "0", "1")
			mux := inbox.NewMux()
			ok(t, mux.HandleBatch("order.*", func(ctx context.Context, tx postroom.Tx, msgs []*postroom.Message) ([]error, error) {
				_, err := f.ReceiveTx(ctx, tx, message("write"))
				ok(t, err)
				return h(ctx, tx, msgs)
			}, inbox.HandlerOptions{}))
			ok(t, inbox.NewWorker(f.Inbox, mux, inbox.WorkerOptions{}).RunUntilIdle(t.Context()))
			f.wantState(t, "write", postroom.StateNone)
			for _, id := range []string{"0", "1"} {
				if r := f.record(t, id); r.Attempt != 1 || r.LastError == "" {
					t.Errorf("%s: attempt %d, error %q", name, r.Attempt, r.LastError)
				}
			}
		})
	}
}

// slowBegin keeps each transaction waiting, as a busy writer does.
type slowBegin struct{ *memstore.Store }

func (s slowBegin) Begin(ctx context.Context) (box.Transaction, error) {
	time.Sleep(3 * time.Second)
	return s.Store.Begin(ctx)
}

func TestWaitingForATransactionIsNotTheHandlersTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := openBox(t, slowBegin{memstore.New(memstore.Options{})}, inbox.Options{}, &logs{})
		_, stop := work(t, in, transactional(func(ctx context.Context, _ postroom.Tx, _ *postroom.Message) error {
			time.Sleep(time.Second)
			return ctx.Err()
		}), inbox.WorkerOptions{HandlerTimeout: 2 * time.Second})
		_, err := in.Receive(t.Context(), message("1"))
		ok(t, err)
		time.Sleep(5 * time.Second)
		r, err := in.Get(t.Context(), "shop", "1")
		ok(t, err)
		if r.State != postroom.StateDone || r.Done.Runs != 1 {
			t.Errorf("state %v after %d runs: %s", r.State, r.Done.Runs, r.LastError)
		}
		ok(t, stop())
	})
}

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

// untouched fails the test when anything reaches the store.
type untouched struct {
	box.Store
	t *testing.T
}

func (u untouched) Put(context.Context, postroom.Tx, []box.Put) ([]box.PutResult, error) {
	u.t.Error("the store was called")
	return nil, errors.New("called")
}

func TestArgumentsAreCheckedBeforeTheStoreIsCalled(t *testing.T) {
	store := untouched{memstore.New(memstore.Options{}), t}
	in := openBox(t, store, inbox.Options{}, &logs{})
	ctx := t.Context()
	long := strings.Repeat("é", 256)
	for _, c := range []struct {
		name, argument string
		change         func(*postroom.Message)
	}{
		{"IBX-016 source is required", "source", func(m *postroom.Message) { m.Source = "" }},
		{"IBX-017 id is required", "id", func(m *postroom.Message) { m.ID = "" }},
		{"IBX-015 topic is required", "topic", func(m *postroom.Message) { m.Topic = "" }},
		{"IBX-018 payload must not be nil", "payload", func(m *postroom.Message) { m.Payload = nil }},
		{"IBX-020 topic of 256 characters", "topic", func(m *postroom.Message) { m.Topic = long }},
		{"IBX-011 id of 256 characters", "id", func(m *postroom.Message) { m.ID = long }},
		{"IBX-012 source of 256 characters", "source", func(m *postroom.Message) { m.Source = long }},
		{"payload over the limit", "payload", func(m *postroom.Message) { m.Payload = make([]byte, 1<<20+1) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := message("1")
			c.change(&m)
			res, err := in.Receive(ctx, m)
			wantArgument(t, err, c.argument)
			wantArgument(t, res.Err, c.argument)
			tx, _ := store.Begin(ctx)
			_, err = in.ReceiveTx(ctx, tx, m)
			wantArgument(t, err, c.argument)
		})
	}
	t.Run("IBX-009 and IBX-010 of the duplicate check", func(t *testing.T) {
		_, err := in.AlreadyProcessed(ctx, "shop", "", nil)
		wantArgument(t, err, "id")
		_, err = in.AlreadyProcessed(ctx, "", "1", nil)
		wantArgument(t, err, "source")
		_, err = in.AlreadyProcessed(ctx, long, "1", nil)
		wantArgument(t, err, "source")
	})
	t.Run("batches and transactions", func(t *testing.T) {
		_, err := in.ReceiveAll(ctx, nil)
		wantArgument(t, err, "messages")
		_, err = in.ReceiveAllTx(ctx, nil, []postroom.Message{})
		wantArgument(t, err, "transaction")
		res, err := in.ReceiveAll(ctx, []postroom.Message{})
		if err != nil || len(res) != 0 {
			t.Errorf("an empty batch gives %v, %v", res, err)
		}
	})
}

func TestIBX019_empty_payload_is_valid(t *testing.T) {
	f := open(t, inbox.Options{})
	m := message("1")
	m.Payload = []byte{}
	res, err := f.Receive(t.Context(), m)
	if err != nil || res.Outcome != postroom.Accepted {
		t.Fatalf("got %v, %v", res, err)
	}
}

func TestReceiveAllFailsInvalidMessagesAlone(t *testing.T) {
	f := open(t, inbox.Options{})
	bad := message("")
	res, err := f.ReceiveAll(t.Context(), []postroom.Message{message("1"), bad, message("1"), message("2")})
	wantArgument(t, err, "id")
	for i, want := range []postroom.Outcome{postroom.Accepted, 0, postroom.Duplicate, postroom.Accepted} {
		if res[i].Outcome != want {
			t.Errorf("outcome %d is %s, want %s", i, res[i].Outcome, want)
		}
	}
	wantArgument(t, res[1].Err, "id")
	res, err = f.ReceiveAll(t.Context(), []postroom.Message{message("1"), message("2")})
	if err != nil || res[0].Outcome != postroom.Duplicate || res[1].Outcome != postroom.Duplicate {
		t.Errorf("a batch of duplicates gives %v, %v", res, err)
	}
}

func TestReceiveTxCommitsWithTheCaller(t *testing.T) {
	f := open(t, inbox.Options{})
	for _, commit := range []bool{false, true} {
		tx, err := f.store.Begin(t.Context())
		ok(t, err)
		res, err := f.ReceiveAllTx(t.Context(), tx, []postroom.Message{message("1"), message("1")})
		if err != nil || res[0].Outcome != postroom.Accepted || res[1].Outcome != postroom.Duplicate {
			t.Fatalf("got %v, %v", res, err)
		}
		if commit {
			ok(t, tx.Commit(t.Context()))
			f.wantState(t, "1", postroom.StateProcessing)
		} else {
			ok(t, tx.Rollback(t.Context()))
			f.wantState(t, "1", postroom.StateNone)
		}
	}
}

// hangs keeps a Put until its context ends.
type hangs struct{ box.Store }

func (h hangs) Put(ctx context.Context, _ postroom.Tx, _ []box.Put) ([]box.PutResult, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestReceiveWhoseContextEndsOnTheWayIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := openBox(t, hangs{memstore.New(memstore.Options{})}, inbox.Options{}, &logs{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		res, err := in.Receive(ctx, message("1"))
		wantErr(t, err, postroom.ErrUnknown)
		wantErr(t, res.Err, context.DeadlineExceeded)
		// The flush goes on without its caller, and has an end of its own.
		time.Sleep(time.Minute)
	})
}

func TestNormalisation(t *testing.T) {
	f := open(t, inbox.Options{HashPayload: true})
	m := message("1")
	due := time.Date(2030, 1, 2, 3, 4, 5, 6789, time.FixedZone("x", 3600))
	m.DueAt = due
	m.Attempt, m.LastError = 7, "not the sender's to say"
	_, err := f.Receive(t.Context(), m)
	ok(t, err)
	r := f.record(t, "1")
	if len(r.Hash) != 32 || r.HashAlg != "sha256" {
		t.Errorf("hash is %d bytes of %q", len(r.Hash), r.HashAlg)
	}
	if want := due.UTC().Truncate(time.Microsecond); !r.DueAt.Equal(want) || r.DueAt.Location() != time.UTC {
		t.Errorf("due time is %v, want %v", r.DueAt, want)
	}
	if r.Attempt != 0 || r.LastError != "" {
		t.Errorf("attempt %d and error %q came in with the message", r.Attempt, r.LastError)
	}

	g := open(t, inbox.Options{})
	m = message("2")
	m.Hash = []byte{1}
	_, err = g.Receive(t.Context(), m)
	ok(t, err)
	if alg := g.record(t, "2").HashAlg; alg != "sha256" {
		t.Errorf("the default algorithm is %q", alg)
	}
}

func TestIBX008_other_hash_is_warned_of_and_counted(t *testing.T) {
	f := open(t, inbox.Options{OnDuplicate: inbox.Keep})
	m := message("1")
	m.Hash = []byte{1}
	_, err := f.Receive(t.Context(), m)
	ok(t, err)
	m.Hash = []byte{2}
	res, err := f.Receive(t.Context(), m)
	ok(t, err)
	if !res.Mismatch || res.Outcome != postroom.Conflict {
		t.Errorf("got %+v", res)
	}
	if len(f.logs.with("level=WARN", "another hash", "id=1")) != 1 {
		t.Errorf("no warning in\n%s", f.logs)
	}
	if n := f.total(t, box.CountConflict); n != 1 {
		t.Errorf("%d conflicts counted, want 1", n)
	}
}

func (f *fixture) total(t *testing.T, name string) int64 {
	t.Helper()
	return total(t, f.Inbox, name)
}

func total(t *testing.T, in *inbox.Inbox, name string) (n int64) {
	t.Helper()
	s, err := in.Stats(t.Context())
	ok(t, err)
	for _, c := range s.Totals {
		if c.Name == name {
			n += c.N
		}
	}
	return n
}

func TestIBX002_to_005_AlreadyProcessed_and_the_marks(t *testing.T) {
	f := open(t, inbox.Options{})
	ctx := t.Context()
	check := func(want bool) {
		t.Helper()
		got, err := f.AlreadyProcessed(ctx, "shop", "1", nil)
		if err != nil || got != want {
			t.Errorf("already processed is %v, %v; want %v", got, err, want)
		}
	}
	check(false)
	f.wantState(t, "1", postroom.StateSeen)
	ok(t, f.MarkProcessing(ctx, "shop", "1"))
	f.wantState(t, "1", postroom.StateProcessing)
	check(false)
	ok(t, f.MarkDead(ctx, "shop", "1", "broken"))
	f.wantState(t, "1", postroom.StateDead)
	ok(t, f.MarkProcessed(ctx, "shop", "1"))
	check(true)
	wantArgument(t, f.MarkProcessed(ctx, "shop", ""), "id")
}

func TestTotalsAreWrittenInTheBackgroundAndOnClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		written := func() (n int64) {
			s, err := f.store.Stats(t.Context(), "orders")
			ok(t, err)
			for _, c := range s.Totals {
				n += c.N
			}
			return n
		}
		f.receive(t, "1", "2")
		if n := written(); n != 0 {
			t.Errorf("%d counted on the hot path", n)
		}
		time.Sleep(5*time.Second + 1)
		synctest.Wait()
		if n := written(); n != 2 {
			t.Errorf("%d counted after 5 s, want 2", n)
		}
		f.receive(t, "3")
		ok(t, f.Close())
		if n := written(); n != 3 {
			t.Errorf("%d counted after Close, want 3", n)
		}
	})
}

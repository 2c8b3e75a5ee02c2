package memstore_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/memstore"
)

func queue(id string) []box.Put {
	return []box.Put{{Mode: box.Queue, Message: postroom.Message{
		Consumer: "c", Source: "s", ID: id, Topic: "t", Payload: []byte("x"),
	}}}
}

// holding gives a store whose only writer is an open transaction.
func holding(t *testing.T) (*memstore.Store, box.Transaction) {
	t.Helper()
	s := memstore.New(memstore.Options{})
	tx, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), tx, queue("held")); err != nil {
		t.Fatal(err)
	}
	return s, tx
}

func TestASecondWriterGivesUpAfterTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, tx := holding(t)
		begun := time.Now()
		_, err := s.Put(t.Context(), nil, queue("other"))
		if !errors.Is(err, postroom.ErrInProgress) {
			t.Errorf("the second writer got %v, want ErrInProgress", err)
		}
		if waited := time.Since(begun); waited != 5*time.Second {
			t.Errorf("the second writer waited for %v, want 5s", waited)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestASecondWriterGoesOnWhenTheFirstEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, tx := holding(t)
		second := make(chan box.PutResult)
		go func() {
			res, err := s.Put(t.Context(), nil, queue("held"))
			if err != nil {
				t.Error(err)
			}
			second <- res[0]
		}()
		synctest.Wait()
		select {
		case <-second:
			t.Fatal("the second writer did not wait")
		default:
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := (<-second).Outcome; got != postroom.Duplicate {
			t.Errorf("the second writer got %v, want duplicate", got)
		}
	})
}

func TestAWaitingWriterObeysItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, tx := holding(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Put(ctx, nil, queue("other")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAnEndedTransactionIsRefused(t *testing.T) {
	s, tx := holding(t)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), tx, queue("late")); err == nil {
		t.Error("a put in an ended transaction was accepted")
	}
	if err := tx.Commit(t.Context()); err == nil {
		t.Error("a commit after the rollback was accepted")
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Errorf("a second rollback does nothing, but gave %v", err)
	}
}

func TestTransactionsOfAnotherStoreAreForeign(t *testing.T) {
	_, tx := holding(t)
	other := memstore.New(memstore.Options{})
	if _, err := other.Put(t.Context(), tx, queue("a")); !errors.Is(err, postroom.ErrForeignTx) {
		t.Errorf("got %v, want ErrForeignTx", err)
	}
}

func TestClosingFreesAnOpenTransaction(t *testing.T) {
	s, tx := holding(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); !errors.Is(err, postroom.ErrClosed) {
		t.Errorf("commit after close gave %v, want ErrClosed", err)
	}
}

func TestTimeInABubbleMovesTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(memstore.Options{})
		puts := queue("a")
		puts[0].Message.DueAt = time.Now().Add(time.Hour)
		if _, err := s.Put(t.Context(), nil, puts); err != nil {
			t.Fatal(err)
		}
		for _, want := range []int{0, 1} {
			got, err := s.Claim(t.Context(), box.ClaimRequest{Consumer: "c", Owner: "o", Lease: time.Minute, Limit: 9})
			if err != nil || len(got) != want {
				t.Errorf("claimed %d, %v; want %d", len(got), err, want)
			}
			time.Sleep(time.Hour)
		}
	})
}

func TestLastSeenIsWrittenAtMostOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(memstore.Options{})
		first := time.Now().UTC()
		for _, step := range []struct{ later, seen time.Duration }{
			{0, 0},
			{999 * time.Millisecond, 0},
			{time.Millisecond, time.Second},
			{999 * time.Millisecond, time.Second},
		} {
			time.Sleep(step.later)
			if _, err := s.Put(t.Context(), nil, queue("a")); err != nil {
				t.Fatal(err)
			}
			rec, err := s.Get(t.Context(), postroom.Key{Consumer: "c", Source: "s", ID: "a"})
			if err != nil {
				t.Fatal(err)
			}
			if got := rec.LastSeen.Sub(first); got != step.seen {
				t.Errorf("last seen after %v, want %v", got, step.seen)
			}
		}
	})
}

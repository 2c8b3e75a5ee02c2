package memstore

import (
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

func message1(id string) postroom.Message {
	return postroom.Message{Consumer: "c", Source: "s", ID: id, Topic: "t", Payload: []byte("x")}
}

func TestTransactionIsInvisibleUntilCommit(t *testing.T) {
	ctx := t.Context()
	s := New(Options{Wait: time.Millisecond})
	tx, err := s.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(ctx, tx, []box.Put{{Mode: box.Queue, Message: message1("a")}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(ctx, postroom.Key{Consumer: "c", Source: "s", ID: "a"}); err != postroom.ErrNotFound {
		t.Fatalf("a reader saw an uncommitted message: %v", err)
	}
	if _, err := s.Put(ctx, nil, []box.Put{{Mode: box.Queue, Message: message1("b")}}); err != postroom.ErrInProgress {
		t.Fatalf("a second writer got %v, not ErrInProgress", err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Claim(ctx, box.ClaimRequest{Consumer: "c", Owner: "o", Lease: time.Minute, Limit: 10}); err != nil || len(got) != 1 {
		t.Fatalf("claimed %d, %v", len(got), err)
	}
}

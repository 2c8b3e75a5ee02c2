package outbox_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/memstore"
	"github.com/postroom/postroom/outbox"
)

// slowStore counts what it commits by itself, each of which takes a while.
type slowStore struct {
	*memstore.Store
	commits atomic.Int32
}

func (s *slowStore) Outbox() (box.Store, error) { return s, nil }

func (s *slowStore) Put(ctx context.Context, tx postroom.Tx, puts []box.Put) ([]box.PutResult, error) {
	if tx == nil {
		s.commits.Add(1)
		time.Sleep(10 * time.Millisecond)
	}
	return s.Store.Put(ctx, tx, puts)
}

func TestPublish_at_the_same_time_shares_commits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{Store: memstore.New(memstore.Options{})}
		out, err := outbox.New(store, outbox.Options{Source: "shop", Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		const callers = 100
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				if err := out.Publish(t.Context(), message(fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := store.commits.Load(); n > 10 {
			t.Errorf("%d commits for %d messages, want a few", n, callers)
		}
		r := &recorder{}
		if err := outbox.NewRelay(out, outbox.To(r), outbox.RelayOptions{}).RunUntilIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(r.ids()) != callers {
			t.Errorf("%d were sent", len(r.ids()))
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

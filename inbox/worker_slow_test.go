package inbox_test

import (
	"context"
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

// slowStore lets the answer to each claim take its time.
type slowStore struct {
	*memstore.Store
	claims atomic.Int32
	slow   func(box.ClaimRequest) time.Duration
}

func (s *slowStore) Claim(ctx context.Context, req box.ClaimRequest) ([]*postroom.Message, error) {
	s.claims.Add(1)
	msgs, err := s.Store.Claim(ctx, req)
	time.Sleep(s.slow(req))
	return msgs, err
}

func openSlow(t *testing.T, slow func(box.ClaimRequest) time.Duration) (*slowStore, *fixture) {
	t.Helper()
	s := &slowStore{Store: memstore.New(memstore.Options{}), slow: slow}
	f := &fixture{store: s.Store, logs: &logs{}}
	f.Inbox = openBox(t, s, inbox.Options{}, f.logs)
	return s, f
}

// A process that is stopped while it claims a suspect finds on resuming that the
// lease is over. It must go on with other messages.
func TestNever03_worker_that_slept_through_the_lease_of_a_suspect_goes_on(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lease = 30 * time.Second
		var slept atomic.Bool
		s, f := openSlow(t, func(req box.ClaimRequest) time.Duration {
			if req.Suspect && slept.CompareAndSwap(false, true) {
				return 2 * lease
			}
			return 0
		})
		f.receive(t, "killer")
		for range box.SuspectAt {
			_, err := s.Store.Claim(t.Context(), box.ClaimRequest{Consumer: "orders", Owner: "dead", Lease: lease, Limit: 1})
			ok(t, err)
			time.Sleep(lease)
			_, err = s.Reap(t.Context(), box.ReapRequest{Consumer: "orders"})
			ok(t, err)
		}
		var ran atomic.Int32
		_, stop := work(t, f.Inbox, handling(func(context.Context, *postroom.Message) error {
			ran.Add(1)
			return nil
		}), inbox.WorkerOptions{Lease: lease})
		time.Sleep(3 * lease)
		f.receive(t, "innocent")
		time.Sleep(3 * lease)
		synctest.Wait()
		ok(t, stop())
		if !slept.Load() {
			t.Fatal("no suspect was claimed")
		}
		if n := ran.Load(); n != 2 {
			t.Errorf("%d runs, want those of the suspect and of another message", n)
		}
	})
}

// Where claims are slow beside the runs that were, many are claimed ahead. While
// runs hang, that must not go on again and again.
func TestWorkerWhoseHandlersHangDoesNotClaimAheadAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots, quick = 40, 400
		s, f := openSlow(t, func(box.ClaimRequest) time.Duration { return 50 * time.Millisecond })
		for i := range 1000 {
			f.receive(t, fmt.Sprint(i))
		}
		var ran atomic.Int32
		hang := make(chan struct{})
		_, stop := work(t, f.Inbox, handling(func(context.Context, *postroom.Message) error {
			if ran.Add(1) > quick {
				<-hang
			}
			return nil
		}), inbox.WorkerOptions{Concurrency: slots, Batch: 20})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		before := s.claims.Load()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := s.claims.Load() - before; n > 6 {
			t.Errorf("%d claims in a minute in which all slots hang", n)
		}
		close(hang)
		ok(t, stop())
	})
}

// A hint that comes while a claim looks everywhere is about what that claim may
// not have seen, whatever else the worker is about to look for.
func TestWorkerFollowsAHintThatCameWhileItLookedEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const trip = time.Second
		_, f := openSlow(t, func(req box.ClaimRequest) time.Duration {
			if req.Suspect {
				return 0
			}
			return trip
		})
		m := message("of a group")
		m.Group = "g"
		_, err := f.Receive(t.Context(), m)
		ok(t, err)
		var got, ran time.Time
		_, stop := work(t, f.Inbox, handling(func(_ context.Context, m *postroom.Message) error {
			if m.Group == "" {
				ran = time.Now()
			}
			return nil
		}), inbox.WorkerOptions{Concurrency: 10, Batch: 10})
		time.Sleep(trip + 100*time.Millisecond) // the group went, and a claim for its next one
		got = time.Now()
		f.receive(t, "after that claim")
		time.Sleep(time.Minute)
		synctest.Wait()
		ok(t, stop())
		if d := ran.Sub(got); ran.IsZero() || d > 2*trip {
			t.Errorf("the message ran %v after it came, want the claim under way and the next", d)
		}
	})
}

package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/memstore"
)

// unsteadyStore settles and claims together, takes its time, and fails now and
// then, before it has done anything or after it has done all.
type unsteadyStore struct {
	*memstore.Store
	mu     sync.Mutex
	chance *rand.Rand
	steady bool
}

var errUnsteady = errors.New("unsteady")

func (s *unsteadyStore) fate() (wait time.Duration, before, after error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.steady {
		return 0, nil, nil
	}
	wait = time.Duration(s.chance.ExpFloat64() * float64(20*time.Millisecond))
	switch s.chance.IntN(60) {
	case 0:
		before = errUnsteady
	case 1:
		after = fmt.Errorf("%w: %w", postroom.ErrUnknown, errUnsteady)
	case 2:
		wait += 4 * time.Second
	}
	return wait, before, after
}

func (s *unsteadyStore) Claim(ctx context.Context, req box.ClaimRequest) ([]*postroom.Message, error) {
	wait, before, after := s.fate()
	if before != nil {
		return nil, before
	}
	msgs, err := s.Store.Claim(ctx, req)
	time.Sleep(wait)
	if err = errors.Join(err, after); err != nil {
		return nil, err
	}
	return msgs, nil
}

func (s *unsteadyStore) Settle(ctx context.Context, tx postroom.Tx, all []box.Settlement) ([]box.Settled, error) {
	wait, before, after := s.fate()
	if before != nil {
		return nil, before
	}
	settled, err := s.Store.Settle(ctx, tx, all)
	time.Sleep(wait)
	if err = errors.Join(err, after); err != nil {
		return nil, err
	}
	return settled, nil
}

func (s *unsteadyStore) Exchanges() bool { return true }

func (s *unsteadyStore) Exchange(ctx context.Context, all []box.Settlement, req box.ClaimRequest) ([]box.Settled, []*postroom.Message, error) {
	settled, err := s.Store.Settle(ctx, nil, all)
	if err != nil {
		return nil, nil, err
	}
	msgs, err := s.Claim(ctx, req)
	return settled, msgs, err
}

// Whatever becomes of claims under way, with what they settle along: no message
// runs twice at once in a process, each is Done in the end, and a worker that
// stops leaves no lease behind that it knows of.
func TestNever14_worker_on_an_unsteady_store_runs_each_message_to_its_end(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const messages = 400
				s := &unsteadyStore{Store: memstore.New(memstore.Options{}), chance: rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // to be repeatable
				f := &fixture{store: s.Store, logs: &logs{}}
				f.Inbox = openBox(t, s, inbox.Options{}, f.logs)
				for i := range messages {
					m := message(fmt.Sprint(i))
					if i%5 == 0 {
						m.Group = fmt.Sprint("g", i%3)
					}
					_, err := f.Receive(t.Context(), m)
					ok(t, err)
				}
				var mu sync.Mutex
				chance, running := rand.New(rand.NewPCG(seed, 1)), map[string]bool{} //nolint:gosec // to be repeatable
				mux := handling(func(_ context.Context, m *postroom.Message) error {
					mu.Lock()
					if running[m.ID] {
						t.Errorf("message %s runs twice at once", m.ID)
					}
					running[m.ID] = true
					took, fails := time.Duration(chance.ExpFloat64()*float64(10*time.Millisecond)), chance.IntN(30) == 0
					if chance.IntN(50) == 0 {
						took += 2 * time.Second
					}
					mu.Unlock()
					time.Sleep(took)
					mu.Lock()
					defer mu.Unlock()
					delete(running, m.ID)
					if fails {
						return errors.New("by chance")
					}
					return nil
				})
				o := inbox.WorkerOptions{Concurrency: 8, Batch: 10, Lease: 15 * time.Second}
				for range 3 { // it stops in the middle
					_, stop := work(t, f.Inbox, mux, o)
					time.Sleep(2 * time.Second)
					ok(t, stop())
				}
				_, stop := work(t, f.Inbox, mux, o)
				time.Sleep(10 * time.Minute)
				s.mu.Lock()
				s.steady = true
				s.mu.Unlock()
				time.Sleep(5 * time.Minute)
				ok(t, stop())
				stats, err := f.Stats(t.Context())
				ok(t, err)
				for _, c := range stats.Live {
					t.Errorf("%d messages are %v in the end", c.N, c.Stage)
				}
			})
		})
	}
}

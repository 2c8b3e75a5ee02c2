package box

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postroom/postroom"
)

// slowStore takes a second for each commit, and remembers what came in together.
type slowStore struct {
	mu      sync.Mutex
	batches [][]string
	held    map[string]bool
	bad     map[string]bool
}

func (s *slowStore) put(_ context.Context, puts []Put) ([]PutResult, error) {
	results := make([]PutResult, len(puts))
	ids := make([]string, len(puts))
	s.mu.Lock()
	refused := false
	for i := range puts {
		id := puts[i].Message.ID
		ids[i] = id
		results[i].Outcome = postroom.Accepted
		refused = refused || s.bad[id]
		if s.held[id] && puts[i].Divert {
			results[i] = PutResult{Err: ErrHeld}
		}
	}
	s.batches = append(s.batches, ids)
	s.mu.Unlock()
	if len(puts) == 1 && s.held[ids[0]] && !puts[0].Divert {
		time.Sleep(holdTime) // until whoever holds it lets go
	}
	time.Sleep(time.Second)
	if refused {
		return nil, fmt.Errorf("put: %w", ErrRefused)
	}
	return results, nil
}

const holdTime = 20 * time.Second

func queued(id, group string) []Put {
	return []Put{{Mode: Queue, Message: postroom.Message{Source: "s", ID: id, Group: group}}}
}

// gathering runs fn with a gather of one flush at a time, in a bubble of its own
// time.
func gathering(t *testing.T, s *slowStore, fn func(t *testing.T, g *gather)) {
	synctest.Test(t, func(t *testing.T) {
		g := newGather(1, s.put)
		fn(t, g)
		if err := g.close(context.Background()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestGather_a_lone_caller_waits_for_nobody(t *testing.T) {
	s := &slowStore{}
	gathering(t, s, func(t *testing.T, g *gather) {
		start := time.Now()
		if _, err := g.do(t.Context(), queued("1", "")); err != nil || time.Since(start) != time.Second {
			t.Errorf("took %v: %v", time.Since(start), err)
		}
	})
}

// A connection hangs, or waits for somebody's lock: others need not.
func TestGather_few_callers_do_not_wait_for_flushes_that_hang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowStore{}
		const hung = flights - 1
		g := newGather(flights, func(ctx context.Context, puts []Put) ([]PutResult, error) {
			if puts[0].Message.ID == "hung" {
				time.Sleep(flushTime)
			}
			return s.put(ctx, puts)
		})
		var wg sync.WaitGroup
		call := func(id string, most time.Duration) {
			wg.Go(func() {
				start := time.Now()
				if _, err := g.do(t.Context(), queued(id, "")); err != nil || time.Since(start) > most {
					t.Errorf("%s took %v: %v", id, time.Since(start), err)
				}
			})
		}
		for range hung {
			call("hung", time.Minute)
			time.Sleep(time.Second)
		}
		for i := range 5 { // the later ones come while the first is under way
			call(fmt.Sprint(i), 3*time.Second)
			time.Sleep(300 * time.Millisecond)
		}
		wg.Wait()
	})
}

func TestGather_callers_share_the_next_commit(t *testing.T) {
	s := &slowStore{}
	gathering(t, s, func(t *testing.T, g *gather) {
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				if _, err := g.do(t.Context(), queued(fmt.Sprint(i), "")); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := len(s.batches); n > 3 {
			t.Errorf("100 callers needed %d commits", n)
		}
	})
}

func TestGather_held_message_does_not_hold_up_its_neighbours(t *testing.T) {
	s := &slowStore{held: map[string]bool{"held": true}}
	gathering(t, s, func(t *testing.T, g *gather) {
		start := time.Now()
		var wg sync.WaitGroup
		took := make(chan time.Duration, 3)
		for _, id := range []string{"a", "held", "b"} {
			wg.Go(func() {
				_, err := g.do(t.Context(), queued(id, ""))
				if err != nil {
					t.Error(err)
				}
				if id != "held" {
					took <- time.Since(start)
				}
			})
		}
		wg.Wait()
		for range 2 {
			if d := <-took; d > 3*time.Second {
				t.Errorf("a neighbour took %v", d)
			}
		}
		if time.Since(start) < holdTime {
			t.Error("the held message did not wait")
		}
	})
}

func TestGather_group_of_a_held_message_keeps_its_order(t *testing.T) {
	s := &slowStore{held: map[string]bool{"first": true}}
	gathering(t, s, func(t *testing.T, g *gather) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		var order []string
		for _, id := range []string{"first", "second"} {
			wg.Go(func() {
				if _, err := g.do(t.Context(), queued(id, "g")); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, id)
			})
			time.Sleep(2 * time.Second) // the first is on the side by now
		}
		wg.Wait()
		if fmt.Sprint(order) != "[first second]" {
			t.Errorf("order %v", order)
		}
	})
}

func TestGather_what_the_database_refuses_fails_alone(t *testing.T) {
	s := &slowStore{bad: map[string]bool{"7": true}}
	gathering(t, s, func(t *testing.T, g *gather) {
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				_, err := g.do(t.Context(), queued(fmt.Sprint(i), ""))
				if refused := errors.Is(err, ErrRefused); refused != (i == 7) {
					t.Errorf("message %d: %v", i, err)
				}
			})
		}
		wg.Wait()
	})
}

func TestGather_context_that_ends(t *testing.T) {
	s := &slowStore{}
	gathering(t, s, func(t *testing.T, g *gather) {
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer cancel()
				_, err := g.do(ctx, queued(fmt.Sprint(i), ""))
				// The first is under way when its context ends, the second still
				// waits for the first.
				if unknown := errors.Is(err, postroom.ErrUnknown); unknown != (i == 0) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("message %d: %v", i, err)
				}
			})
		}
		wg.Wait()
	})
	if len(s.batches) != 1 {
		t.Errorf("batches %v: what was withdrawn must not be put", s.batches)
	}
}

func TestGather_bounds_a_flush(t *testing.T) {
	s := &slowStore{}
	gathering(t, s, func(t *testing.T, g *gather) {
		puts := make([]Put, 3*flushMessages)
		for i := range puts {
			puts[i] = queued(fmt.Sprint(i), "")[0]
		}
		if _, err := g.do(t.Context(), puts); err != nil {
			t.Fatal(err)
		}
		if len(s.batches) != 3 {
			t.Errorf("%d flushes", len(s.batches))
		}
	})
}

func TestGather_parts_of_a_call_go_one_after_the_other(t *testing.T) {
	for name, puts := range map[string][]Put{
		"many":  make([]Put, 2*flushMessages+1),
		"large": make([]Put, 3),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &slowStore{}
				g := newGather(flights, s.put)
				for i := range puts {
					puts[i] = queued(fmt.Sprint(i), "g")[0]
					if name == "large" {
						puts[i].Message.Payload = make([]byte, flushBytes)
					}
				}
				start := time.Now()
				if _, err := g.do(t.Context(), puts); err != nil {
					t.Fatal(err)
				}
				if len(s.batches) != 3 || time.Since(start) != 3*time.Second {
					t.Errorf("%d commits of a second each took %v: a later part may overtake an earlier one", len(s.batches), time.Since(start))
				}
			})
		})
	}
}

func TestGather_refused_message_fails_alone_in_its_call(t *testing.T) {
	s := &slowStore{bad: map[string]bool{"7": true}}
	gathering(t, s, func(t *testing.T, g *gather) {
		puts := make([]Put, 16)
		for i := range puts {
			puts[i] = queued(fmt.Sprint(i), "")[0]
		}
		results, err := g.do(t.Context(), puts)
		if err != nil {
			t.Fatal(err)
		}
		for i := range results {
			if refused := errors.Is(results[i].Err, ErrRefused); refused != (i == 7) {
				t.Errorf("message %d: %v", i, results[i].Err)
			}
		}
	})
}

func TestGather_wait_on_the_side_is_bounded(t *testing.T) {
	s := &slowStore{held: map[string]bool{"held": true}}
	gathering(t, s, func(t *testing.T, g *gather) {
		start := time.Now()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				results, err := g.do(t.Context(), queued("held", ""))
				if err != nil || (results[0].Err != nil && !errors.Is(results[0].Err, postroom.ErrInProgress)) {
					t.Errorf("%v %v", results, err)
				}
			})
		}
		wg.Wait()
		if d := time.Since(start); d > 2*sideTime {
			t.Errorf("the last caller waited %v", d)
		}
	})
}

// Where others keep the processor busy, somebody has come whenever it is one's turn
// again.
func TestGather_does_not_wait_for_callers_that_need_a_processor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	g := newGather(1, nil)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for begin := time.Now(); time.Since(begin) < time.Millisecond; {
			}
			g.mu.Lock()
			g.waiting = append(g.waiting, &arrival{})
			g.mu.Unlock()
			runtime.Gosched()
		}
	}()
	g.await()
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.waiting); n > 10 {
		t.Errorf("it waited until %d had come", n)
	}
}

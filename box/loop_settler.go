package box

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A settler settles jobs in batches that form themselves: while one is being
// committed the next gathers. What the store refuses is tried again, apart from
// the rest, for as long as the loop lives.
type settler struct {
	box     *Box
	keeper  *Keeper
	settled chan<- []*Job

	mu      sync.Mutex
	waiting []*Job
	signal  chan struct{}
}

// The pauses between attempts on a store that fails.
const (
	settlePause    = 50 * time.Millisecond
	maxSettlePause = 2 * time.Second
	// settleWidth is how many jobs are settled together at most.
	settleWidth = 500
)

func newSettler(b *Box, k *Keeper, settled chan<- []*Job) *settler {
	return &settler{box: b, keeper: k, settled: settled, signal: make(chan struct{}, 1)}
}

func (s *settler) add(jobs ...*Job) {
	s.mu.Lock()
	s.waiting = append(s.waiting, jobs...)
	s.mu.Unlock()
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

func (s *settler) take(n int) []*Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(n, len(s.waiting))
	jobs := slices.Clone(s.waiting[:n])
	s.waiting = slices.Delete(s.waiting, 0, n)
	return jobs
}

// run settles until ctx is done. A batch that fails is halved and goes to the
// back, so that one bad settlement soon fails alone; success doubles the width.
func (s *settler) run(ctx context.Context) {
	width, wait := settleWidth, settlePause
	for {
		jobs := s.take(width)
		if len(jobs) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-s.signal:
			}
			continue
		}
		again, err := s.settle(ctx, jobs)
		if len(again) == 0 {
			width, wait = min(2*width, settleWidth), settlePause
			continue
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.keeper.note(err)
			s.box.log.WarnContext(ctx, "messages not settled, will try again", "jobs", len(again), "error", err)
			width = max(width/2, 1)
		}
		s.add(again...)
		if !pause(ctx, wait) {
			return
		}
		wait = min(2*wait, maxSettlePause)
	}
}

// settle gives back the jobs that are not settled yet.
func (s *settler) settle(ctx context.Context, jobs []*Job) (again []*Job, err error) {
	results, err := s.box.Settle(ctx, ends(jobs))
	if err != nil {
		return jobs, err
	}
	done, again := conclude(jobs, results)
	select {
	case s.settled <- done:
		return again, nil
	case <-ctx.Done():
		return again, ctx.Err()
	}
}

// ends gives the ends of jobs.
func ends(jobs []*Job) []*End {
	all := make([]*End, 0, len(jobs))
	for _, j := range jobs {
		for i := range j.Ends {
			all = append(all, &j.Ends[i])
		}
	}
	return all
}

// conclude parts jobs by the results of their ends: those that are settled, and
// those of which something was locked.
func conclude(jobs []*Job, results []Settled) (done, again []*Job) {
	for _, j := range jobs {
		var locked []End
		for i := range j.Ends {
			if results[i].Locked {
				locked = append(locked, j.Ends[i])
			}
		}
		results = results[len(j.Ends):]
		j.Ends = locked
		if len(locked) > 0 {
			again = append(again, j)
		} else {
			done = append(done, j)
		}
	}
	return done, again
}

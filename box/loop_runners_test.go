package box

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func jobsOf(runs ...func()) []*Job {
	jobs := make([]*Job, len(runs))
	for i, run := range runs {
		jobs[i] = &Job{hold: new(Hold), run: func(context.Context, *Job) { run() }}
	}
	return jobs
}

// Whatever the others do, each job begins, and is known to have ended as soon as it
// has.
func TestRunners_no_job_waits_for_another(t *testing.T) {
	for name, c := range map[string]struct {
		processors int
		took       time.Duration
	}{
		"one processor":             {1, 0},
		"several":                   {4, 0},
		"one, they return at once":  {1, time.Microsecond},
		"several, they do":          {4, time.Microsecond},
		"one, they take their time": {1, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.processors))
			synctest.Test(t, func(t *testing.T) {
				r := newRunners()
				r.took = c.took
				gate := make(chan struct{})
				var began atomic.Int32
				quick := func() { began.Add(1) }
				slow := func() { began.Add(1); <-gate }
				exits := func() { began.Add(1); runtime.Goexit() }
				r.start(jobsOf(quick, slow, exits, quick, slow, slow, exits, slow))
				r.start(jobsOf(slow, exits))
				synctest.Wait()
				if n := began.Load(); n != 10 {
					t.Errorf("%d of 10 began", n)
				}
				told := 0
				for len(r.signal) > 0 {
					told += len(r.finished())
				}
				if told != 5 {
					t.Errorf("%d of 5 that ended are known", told)
				}
				close(gate)
				synctest.Wait()
				<-r.signal
				if n := len(r.finished()); n != 5 {
					t.Errorf("%d of the other 5 are known", n)
				}
			})
		})
	}
}

func TestRunners_tell_of_what_ended_before_jobs_that_stay(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, func(t *testing.T) {
		r := newRunners()
		r.took = time.Microsecond
		gate := make(chan struct{})
		defer close(gate)
		stay := func() { <-gate }
		r.start(jobsOf(func() {}, func() {}, stay, stay))
		synctest.Wait()
		select {
		case <-r.signal:
		default:
			t.Error("nothing is known to have ended")
		}
		if n := len(r.finished()); n != 2 {
			t.Errorf("%d have ended, want 2", n)
		}
	})
}

func TestRunners_share_goroutines_while_jobs_return_at_once(t *testing.T) {
	r := newRunners()
	called := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.waiting = make([]*Job, 100)
		defer func() { r.waiting = nil }()
		return r.wanted()
	}
	for _, step := range []struct {
		name string
		runs int
		took time.Duration
		want int
	}{
		{"nothing is known", 0, 0, 100},
		{"one returned at once", 1, 0, 1},
		{"all do", 1000, 3 * time.Microsecond, 1},
		{"one was held up", 1, time.Minute, 1},
		{"all take their time", 10, time.Millisecond, 100},
		{"they return at once again", 300, time.Microsecond, 1},
	} {
		for range step.runs {
			r.ran(step.took)
		}
		if n := called(); n != step.want {
			t.Errorf("%s: %d are to come for 100 jobs, want %d", step.name, n, step.want)
		}
	}
}

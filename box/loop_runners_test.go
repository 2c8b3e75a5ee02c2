package box

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
	for name, processors := range map[string]int{"one processor": 1, "several": 4} {
		t.Run(name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			synctest.Test(t, func(t *testing.T) {
				r := newRunners()
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

func TestRunners_jobs_that_return_at_once_share_goroutines(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	r := newRunners()
	names := map[string]bool{} // of goroutines: "goroutine 7 [running]..."
	note := func() {
		buf := make([]byte, 20)
		names[string(buf[:runtime.Stack(buf, false)])] = true
	}
	runs := make([]func(), 1000)
	for i := range runs {
		runs[i] = note
	}
	r.start(jobsOf(runs...))
	for n := 0; n < len(runs); {
		<-r.signal
		n += len(r.finished())
	}
	if len(names) > len(runs)/10 {
		t.Errorf("%d goroutines for %d jobs", len(names), len(runs))
	}
}

package box

import (
	"sync"
	"time"
)

// runners run jobs, each in a goroutine of its own unless they are known to return at
// once: then one goroutine goes on with the next job. Nor does a job wait for another
// there that takes its time after all: as long as any wait, a goroutine is coming for
// them.
type runners struct {
	mu      sync.Mutex
	waiting []*Job
	coming  int           // goroutines that were started and have not got here yet
	took    time.Duration // how long a run takes, a running average
	ended   []*Job        // what has returned
	signal  chan struct{} // something has
}

// Runs of atOnce or less share a goroutine: to start one, with its stack, takes a
// microsecond or two. A single one that the machine held up does not change that.
const (
	atOnce = 50 * time.Microsecond
	heldUp = 2 * time.Millisecond
)

func newRunners() *runners { return &runners{signal: make(chan struct{}, 1)} }

// start has jobs run.
func (r *runners) start(jobs []*Job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, jobs...)
	r.call()
}

// call has goroutines come for jobs that wait.
func (r *runners) call() {
	for want := r.wanted(); r.coming < want; r.coming++ {
		go r.run()
	}
}

// wanted is how many are to be coming.
func (r *runners) wanted() int {
	if 0 < r.took && r.took <= atOnce {
		return min(len(r.waiting), 1)
	}
	return len(r.waiting)
}

func (r *runners) run() {
	defer r.leave() // also when a handler ends the goroutine
	for job := r.first(); job != nil; job = r.next() {
		r.one(job)
	}
}

// first gives a goroutine that has come its first job. Those that came before may
// have jobs that take their time, and not have told what ended earlier.
func (r *runners) first() *Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.coming--
	r.tell()
	return r.take()
}

// next gives the next job.
func (r *runners) next() *Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.take()
}

// leave tells what the goroutine has not told.
func (r *runners) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tell()
}

// take gives the first job that waits, and sees to the others.
func (r *runners) take() *Job {
	if len(r.waiting) == 0 {
		return nil
	}
	job := r.waiting[0]
	r.waiting[0] = nil
	r.waiting = r.waiting[1:]
	r.call()
	return job
}

// one runs a job.
func (r *runners) one(job *Job) {
	began := time.Now()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ran(time.Since(began))
		r.ended = append(r.ended, job)
	}()
	job.run(&job.hold.ctx, job)
}

// ran notes how long a run took.
func (r *runners) ran(d time.Duration) {
	d = min(max(d, time.Microsecond), heldUp)
	if r.took == 0 {
		r.took = d
	}
	r.took += (d - r.took) / 64
}

// tell signals that something has ended.
func (r *runners) tell() {
	if len(r.ended) > 0 {
		select {
		case r.signal <- struct{}{}:
		default:
		}
	}
}

// finished gives the jobs that have ended.
func (r *runners) finished() []*Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.signal:
	default:
	}
	jobs := r.ended
	r.ended = nil
	return jobs
}

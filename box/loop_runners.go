package box

import "sync"

// runners run jobs. No job waits for another that takes its time: whoever begins
// one while more are waiting has another goroutine come for those. But one whose
// job returned at once is here before that, and goes on with the next.
type runners struct {
	mu      sync.Mutex
	waiting []*Job
	coming  bool          // a goroutine was started that has not got here yet
	ended   []*Job        // what has returned
	signal  chan struct{} // something has
}

func newRunners() *runners { return &runners{signal: make(chan struct{}, 1)} }

// start has jobs run.
func (r *runners) start(jobs []*Job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, jobs...)
	r.call()
}

// call has a goroutine come if jobs wait for one.
func (r *runners) call() {
	if len(r.waiting) > 0 && !r.coming {
		r.coming = true
		go r.run()
	}
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
	r.coming = false
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

// take gives the first job that waits. As long as any does, a goroutine is coming.
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
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ended = append(r.ended, job)
	}()
	job.run(&job.hold.ctx, job)
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

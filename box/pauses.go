package box

import (
	"context"
	"sync/atomic"
	"time"
)

// Pauses are what a Runner knows of the topics that are paused.
type Pauses struct {
	box    *Box
	every  time.Duration
	topics atomic.Pointer[map[string]bool]
	read   time.Time // when topics was read
	// doubt: messages were parked since. If their topic went on meanwhile, they are
	// ready again already, and would be parked again and again.
	doubt atomic.Bool
}

// NewPauses makes Pauses that are read at most so often, unless something was
// parked. None is known at first.
func NewPauses(b *Box, every time.Duration) *Pauses {
	p := &Pauses{box: b, every: every}
	p.topics.Store(&map[string]bool{})
	return p
}

// Refresh reads which topics are paused. When that fails, the last answer holds.
// It is for the goroutine of a Loop alone.
func (p *Pauses) Refresh(ctx context.Context) {
	if doubt := p.doubt.Swap(false); !doubt && time.Since(p.read) < p.every {
		return
	}
	list, err := p.box.Paused(ctx)
	if err != nil {
		if ctx.Err() == nil {
			p.box.log.WarnContext(ctx, "paused topics not read, going by the last answer", "error", err)
		}
		return
	}
	topics := make(map[string]bool, len(list))
	for _, t := range list {
		topics[t] = true
	}
	p.topics.Store(&topics)
	p.read = time.Now()
}

// Has tells whether a topic is paused.
func (p *Pauses) Has(topic string) bool { return (*p.topics.Load())[topic] }

// Pause pauses a topic for all, and for this Runner at once.
func (p *Pauses) Pause(ctx context.Context, topic, actor, reason string) error {
	if err := p.box.Pause(ctx, topic, actor, reason); err != nil {
		return err
	}
	for {
		old := p.topics.Load()
		topics := map[string]bool{topic: true}
		for t := range *old {
			topics[t] = true
		}
		if p.topics.CompareAndSwap(old, &topics) {
			return nil
		}
	}
}

// Park lets the messages of a job wait until their topic goes on.
func (p *Pauses) Park(job *Job) {
	for _, m := range job.Messages {
		job.End(m, Settlement{Verb: Park})
	}
	p.doubt.Store(true)
}

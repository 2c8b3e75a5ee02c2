package demo

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// trouble kills and stalls processes until the chaos is over.
func (d *demo) trouble(chaos context.Context) {
	var all sync.WaitGroup
	all.Go(func() {
		d.now(chaos, d.opts.KillEvery, func() {
			if p := d.pick(true); p != nil {
				p.kill()
				d.count(func(l *Ledger) { l.WorkersKilled++ })
			}
		})
	})
	all.Go(func() {
		d.now(chaos, d.opts.CrashEvery, func() {
			if p := d.pick(false); p != nil {
				p.kill()
			}
		})
	})
	if canStall {
		all.Go(func() { d.now(chaos, d.opts.StallEvery, func() { d.stallOne(chaos) }) })
	}
	all.Go(func() { d.now(chaos, d.opts.SuspendEvery, func() { d.suspend(chaos) }) })
	all.Wait()
}

// suspend lets all leases be over for the database while their holders don't
// notice, as when the machine of the workers is suspended for a while: the clock
// that they reckon by stands still then. From here on only the fence tells the
// old holder of a message from the new one. What is moved is the stored end of
// the leases, since a clock can't be; and they are reaped at once, before a
// holder renews its own.
func (d *demo) suspend(chaos context.Context) {
	if d.opts.Store.Suspend(chaos, d.opts.Consumer) != nil {
		return
	}
	d.count(func(l *Ledger) { l.Suspended++ })
	_, _ = d.in.Box().Reap(chaos)
}

// stallOne stops a worker for longer than its leases last, as a long pause of
// its machine would. When it goes on, others have its messages.
func (d *demo) stallOne(chaos context.Context) {
	p := d.pick(true)
	if p == nil || stall(p.cmd.Process) != nil {
		return
	}
	d.count(func(l *Ledger) { l.WorkersStalled++ })
	_ = rest(chaos, d.opts.Lease*3/2)
	_ = resume(p.cmd.Process)
}

// now does something now and then: after half to one and a half of a time.
func (d *demo) now(ctx context.Context, every time.Duration, do func()) {
	if every <= 0 {
		return
	}
	for rest(ctx, every/2+rand.N(every)) { //nolint:gosec // it is a demo
		do()
	}
}

package demo

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/postroom/postroom/box"
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
// that they reckon by stands still then. What is moved is the stored end of the
// leases, since a clock can't be. They are reaped before a holder renews its own,
// and go to a holder elsewhere, who gives them back unrun after a moment. In that
// moment only the fence tells the old holder of a message from the new one.
func (d *demo) suspend(chaos context.Context) {
	if d.opts.Store.Suspend(chaos, d.opts.Consumer) != nil {
		return
	}
	d.count(func(l *Ledger) { l.Suspended++ })
	engine := d.in.Box()
	_, _ = engine.Reap(chaos)
	taken, err := engine.Claim(chaos, box.ClaimRequest{Owner: "elsewhere", Lease: d.opts.Lease, Limit: 1000})
	if err != nil {
		return
	}
	_ = rest(chaos, moment)
	ends := make([]*box.End, len(taken))
	for i, m := range taken {
		ends[i] = &box.End{Settlement: box.Settlement{Lease: m.Lease, Verb: box.Release}, Message: m}
	}
	// What can't be given back now comes back when its lease lapses.
	_, _ = engine.Settle(context.WithoutCancel(chaos), ends)
}

// moment is about how long a worker needs for what it has in hand.
const moment = 150 * time.Millisecond

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

package never

import (
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/sqlstore"
)

// The clock of a Go program can't be moved from outside, so the server's is: the
// driver moves all times on their way, by an hour.
func TestNever10_wrong_clock_of_the_program_changes_nothing(t *testing.T) {
	for name, skew := range map[string]time.Duration{"an hour behind": time.Hour, "an hour ahead": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			onServers(t, func(t *testing.T, w *world) {
				p := w.joinSkewed(skew, sqlstore.Options{})
				// now is the server's clock, as this program sees it.
				stats, err := p.store.Stats(t.Context(), consumer)
				p.must(err)
				now := stats.Now
				if d := time.Until(now) - skew; d < -time.Minute || d > time.Minute {
					t.Fatalf("the clocks are %v apart, want about %v", time.Until(now), skew)
				}
				p.leases(w, now)
				p.dueTimes(w, now)
				p.retention(w)
			})
		})
	}
}

func near(t testing.TB, what string, got, want time.Time) {
	t.Helper()
	if d := got.Sub(want); d < -time.Minute || d > time.Minute {
		t.Errorf("%s is %v, want about %v", what, got, want)
	}
}

func (p *party) leases(w *world, now time.Time) {
	p.receive(message("leased"))
	m := p.claimOne("w", "leased")
	near(p, "the lease's end", m.Lease.Until, now.Add(leaseTime))
	ext, err := p.store.Extend(p.Context(), []postroom.Lease{m.Lease}, 2*leaseTime)
	p.must(err)
	near(p, "the extended lease's end", ext[0].Until, now.Add(2*leaseTime))
	_, err = p.try(nil, box.Guard, message("guarded"))
	p.must(err)
	if got := p.reap(); len(got) != 0 {
		p.Errorf("reaped %v, whose leases are current", got)
	}
	// To others the message is as leased as to this one.
	_, err = w.try(nil, box.Guard, message("guarded"))
	wants(p, err, postroom.ErrInProgress)
	_, err = p.try(nil, box.Once, message("guarded"))
	wants(p, err, postroom.ErrInProgress)
	w.pass(leaseTime + time.Minute)
	if got := p.reap(); len(got) != 1 || got[0].Key.ID != "guarded" {
		p.Errorf("reaped %v, want the guarded one, whose lease has ended", got)
	}
	w.pass(leaseTime)
	if got := p.reap(); len(got) != 1 || got[0].Key.ID != "leased" {
		p.Errorf("reaped %v, want the extended one", got)
	}
	m = p.claimOne("w", "leased")
	p.settle(m, box.Abandon)
	rec, err := p.store.Get(p.Context(), key("leased"))
	p.must(err)
	near(p, "the retry", rec.NextAt, now.Add(2*time.Second))
	if got := p.claim("w", 10); len(got) != 0 {
		p.Errorf("claimed %v before its retry", ids(got))
	}
	w.pass(time.Minute)
	p.ack(p.claimOne("w", "leased"))
}

func (p *party) dueTimes(w *world, now time.Time) {
	due := message("due")
	due.DueAt, due.ExpiresAt = now.Add(30*time.Minute), now.Add(50*time.Minute)
	p.receive(due)
	p.expect("due", "scheduled")
	if got := p.claim("w", 10); len(got) != 0 {
		p.Errorf("claimed %v before it is due", ids(got))
	}
	late := message("late")
	late.ExpiresAt = now.Add(20 * time.Minute)
	p.receive(late)
	w.pass(40 * time.Minute)
	m := p.claimOne("w", "due")
	p.ack(m)
	p.expect("late", "dead")
}

func (p *party) retention(w *world) {
	_, err := p.try(nil, box.Once, message("once"))
	p.must(err)
	// What was done before is half of the retention old by now, or more.
	p.must(p.cleanupAll())
	p.expect("once", "done")
	w.pass(retention / 2)
	p.must(p.cleanupAll())
	p.expect("once", "done")
	w.pass(retention/2 + time.Minute)
	p.must(p.cleanupAll())
	p.expect("once", "none")
}

func (p *party) cleanupAll() error {
	_, err := p.store.Cleanup(p.Context(), box.CleanupRequest{Consumer: consumer, Records: retention})
	return err
}

package never

import (
	"testing"

	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/tests/park"
)

func TestNever01_worker_killed_around_its_commit_does_each_effect_once(t *testing.T) {
	for _, at := range []string{"before commit", "after commit"} {
		t.Run(at, func(t *testing.T) {
			onWorkers(t, func(t *testing.T, w *world) {
				names := []string{"a", "b", "c", "d", "e"}
				w.receiveAll(names...)
				c := w.child("commit", at)
				c.until("ready")
				c.kill()
				w.waitForSessions()
				want, effects := "leased", 0
				if at == "after commit" {
					want, effects = "done", 1
				}
				w.expect("c", want)
				if n := w.effects("c"); n != effects {
					t.Errorf("the effect of c is there %d times, want %d", n, effects)
				}
				w.pass(2 * leaseTime)
				w.finish()
				w.onceEach(names...)
			})
		})
	}
}

// childCommits is a worker that stands still at the commit of message c: the
// server has carried it out, or has not learned of it.
func childCommits(t testing.TB, w *world, at string) {
	p := w.program(0, inbox.Options{})
	when := park.Before
	if at == "after commit" {
		when = park.After
	}
	spot := p.lot.ParkWithin(when, park.Commit, "'c'")
	go p.serve(t.Context(), p.worker(swift(), p.handler(plainly)))
	<-spot.Arrived()
	say("ready")
	stay()
}

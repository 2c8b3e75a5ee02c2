package never

import (
	"testing"

	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/sqlstore"
)

func TestNever16_claim_beside_a_paused_topic_reads_none_of_its_messages(t *testing.T) {
	onAll(t, func(t *testing.T, w *world) {
		w.receive(message("a"))
		if !w.settle(w.claimOne("worker", "a"), box.Park).Applied {
			t.Fatal("not parked")
		}
		w.must(w.store.Pause(t.Context(), consumer, "topic", "", ""))
		worker := w.join(sqlstore.Options{})
		worker.claim("worker", 1)
		if n := worker.lot.Count("parked"); n != 0 {
			t.Errorf("%d looks at parked messages while their topic is paused", n)
		}
		// Whoever resumes may die before it has made them ready.
		w.exec(`DELETE FROM postroom_pause`)
		w.claimOne("worker", "a")
	})
}

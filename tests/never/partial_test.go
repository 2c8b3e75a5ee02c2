package never

import (
	"errors"
	"testing"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// New messages are committed before the known ones of their batch are looked up.
func TestNever14_failure_to_look_up_a_duplicate_is_not_told_of_its_new_neighbours(t *testing.T) {
	onPostgres(t, func(t *testing.T, w *world) {
		w.receive(message("known"))
		down := errors.New("down")
		for _, at := range []string{"lookup", "touch_work"} {
			t.Run(at, func(t *testing.T) {
				if at == "touch_work" {
					w.pass(leaseTime) // so that it was seen long ago
				}
				id := "new " + at
				spot := w.lot.FailAll(at, down)
				results, err := w.store.Put(t.Context(), nil, []box.Put{put(box.Queue, message(id)), put(box.Queue, message("known"))})
				spot.Cancel()
				if err != nil {
					t.Fatal(err)
				}
				if r := results[0]; r.Outcome != postroom.Accepted || r.Err != nil {
					t.Errorf("the new message gave %v %v, want %v", r.Outcome, r.Err, postroom.Accepted)
				}
				if r := results[1]; errors.Is(r.Err, down) != (at == "lookup") {
					t.Errorf("the known message gave %v %v", r.Outcome, r.Err)
				}
				if n := w.count(`SELECT count(*) FROM postroom_work w JOIN postroom_message m ON m.seq = w.seq WHERE m.id = '` + id + `'`); n != 1 {
					t.Errorf("%d work rows of the new message", n)
				}
			})
		}
	})
}

package box

import (
	"testing"

	"github.com/postroom/postroom"
)

// A message that is to be tried again at once may be claimed before this process
// has heard that its last run is settled. It must not be put back for long.
func TestADeliveryRunsOnceTheOneBeforeItHasReturned(t *testing.T) {
	var b Box
	first, second, third := delivery(), delivery(), delivery()
	if !b.run(first) {
		t.Fatal("nothing ran before")
	}
	if b.run(second) {
		t.Error("two deliveries of one message run at once")
	}
	b.ran(first)
	if !b.run(second) {
		t.Error("the first has returned")
	}
	b.forget(first)
	if b.run(third) {
		t.Error("with the first, the second was forgotten, which still runs")
	}
	b.ran(second)
	b.forget(second)
	if !b.run(third) {
		t.Error("nothing runs any more")
	}
}

func delivery() *postroom.Message {
	return &postroom.Message{Lease: postroom.Lease{Seq: 1}}
}

package box

import (
	"testing"

	"github.com/postroom/postroom"
)

// A message that is to be tried again at once may be claimed before this process
// has heard that its last run is settled. It must not be put back for long.
func TestADeliveryRunsOnceTheOneBeforeItHasReturned(t *testing.T) {
	var r runs
	first, second, third := delivered(), delivered(), delivered()
	if !r.begin(first) {
		t.Fatal("nothing ran before")
	}
	if r.begin(second) {
		t.Error("two deliveries of one message run at once")
	}
	r.end(first)
	if !r.begin(second) {
		t.Error("the first has returned")
	}
	r.forget(first)
	if r.begin(third) {
		t.Error("with the first, the second was forgotten, which still runs")
	}
	r.end(second)
	r.forget(second)
	if !r.begin(third) {
		t.Error("nothing runs any more")
	}
}

func delivered() *postroom.Message {
	return &postroom.Message{Lease: postroom.Lease{Seq: 1}}
}

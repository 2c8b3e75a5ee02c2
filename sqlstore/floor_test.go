package sqlstore

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postroom/postroom/box"
)

// queue is the turns of what is ready.
type queue struct {
	floors floors
	ready  []int64
}

func (q *queue) add(first, last int64) {
	for n := first; n <= last; n++ {
		q.ready = append(q.ready, n)
	}
	slices.Sort(q.ready)
}

// claim takes what a claim finds from its floor on.
func (q *queue) claim(limit int) int {
	from, note := q.floors.of(box.ClaimRequest{Consumer: "c", Limit: limit, ReadyOnly: true})
	at, _ := slices.BinarySearch(q.ready, from)
	n := min(limit, len(q.ready)-at)
	all := make([]claimed, n)
	for i, position := range q.ready[at : at+n] {
		all[i] = claimed{turn: position}
	}
	q.ready = slices.Delete(q.ready, at, at+n)
	note(all)
	return n
}

// A caller's transaction takes the turns of its messages long before it commits,
// and a database that was restored counts again from where it was.
func TestNever08_many_turns_below_the_floor_do_not_wait_for_a_look_each(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue{floors: floors{span: 1}}
		q.add(10_001, 20_000)
		for q.claim(100) > 0 {
		}
		q.add(1, 1000)
		if n := q.claim(100); n != 0 {
			t.Fatalf("a claim at the floor took %d from below", n)
		}
		time.Sleep(scanEvery)
		for range 10 {
			if n := q.claim(100); n != 100 {
				t.Fatalf("a claim took %d, %d are ready", n, len(q.ready))
			}
		}
		q.claim(100) // sees that there is no more
		q.add(1, 1)
		if n := q.claim(100); n != 0 {
			t.Errorf("claims go on looking at everything")
		}
	})
}

// Where handlers are slow, much is leased in front of what is ready: a claim begins
// behind it, as soon as what it was claimed beside has had its time to be committed.
func TestFloor_rises_with_time(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue{floors: floors{span: 1}}
		q.add(1, 100)
		q.claim(10)
		begin := func() int64 {
			from, note := q.floors.of(box.ClaimRequest{Consumer: "c", Limit: 1, ReadyOnly: true})
			note(nil)
			return from
		}
		time.Sleep(floorAge - 1)
		if from := begin(); from != 0 {
			t.Errorf("a claim begins at %d, as others may be committed late", from)
		}
		time.Sleep(time.Nanosecond)
		begin() // looks at everything
		if from := begin(); from != 10 {
			t.Errorf("a claim begins at %d, and 10 have been leased for a while", from)
		}
	})
}

// A look for what fell due finds what was committed late, too: polls are counted on.
func TestFloor_is_left_by_a_look_for_what_fell_due(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue{floors: floors{span: 1}}
		q.add(2, 100)
		q.claim(10)
		time.Sleep(scanEvery)
		q.claim(10) // looks at everything
		q.claim(10)
		q.add(1, 1)
		from, note := q.floors.of(box.ClaimRequest{Consumer: "c", Limit: 1})
		note(nil)
		if from != 0 {
			t.Errorf("it begins at %d", from)
		}
	})
}

// looks gives claims that take so long to find those turns; each tells where it began.
func looks(span int64) func(took time.Duration, turns ...int64) int64 {
	f := floors{span: span}
	return func(took time.Duration, turns ...int64) int64 {
		from, note := f.of(box.ClaimRequest{Consumer: "c", Limit: 10, ReadyOnly: true})
		time.Sleep(took)
		var all []claimed
		for _, n := range turns {
			all = append(all, claimed{turn: n})
		}
		note(all)
		return from
	}
}

// Behind an old snapshot there may be a great deal in front of what is ready, which
// each further claim would walk through until the floor has risen.
func TestFloor_rises_at_once_after_a_look_that_took_long(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := looks(1)
		begin(cheap)
		begin(cheap, 500_002, 500_001)
		if from := begin(10*cheap, 500_005, 500_003, 500_004); from != 0 {
			t.Errorf("a claim begins at %d after looks that were cheap", from)
		}
		if from := begin(0); from != 500_003-floorLag {
			t.Errorf("a claim begins at %d after one that took long to find 500003", from)
		}
		time.Sleep(10*cheap*scanShare - 11*cheap)
		if from := begin(0); from == 0 {
			t.Error("looks at everything take more than their share")
		}
		time.Sleep(11 * cheap)
		if from := begin(3*time.Second, 500_006); from != 0 {
			t.Errorf("a claim begins at %d, though it is time to look at everything", from)
		}
		time.Sleep(scanLatest - 3*time.Second)
		if from := begin(0); from != 0 {
			t.Errorf("a claim begins at %d: one look that was held up puts off the next for long", from)
		}
	})
}

// Where each call takes a span of numbers, turns that were taken together lie far
// apart, and a claim passes over what others hold just then.
func TestFloor_rises_behind_calls_not_behind_their_spans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const span = 100_000
		look := looks(span)
		look(10*cheap, 50*span)
		if from := look(0); from > 0 {
			t.Errorf("a claim begins at %d, and 50 calls have taken turns", from)
		}
		look(10*cheap, 2*floorLag*span)
		if from := look(0); from != floorLag*span {
			t.Errorf("a claim begins at %d after one that took long to find %d", from, 2*floorLag*span)
		}
	})
}

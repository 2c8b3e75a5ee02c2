package sqlstore

import (
	"sync"
	"time"

	"github.com/postroom/postroom/box"
)

const (
	// floorLag is how many messages a claim looks back, and floorAge for how long,
	// beyond which it expects nothing that is ready: what was claimed is still in the
	// index while it is leased, or while somebody's old snapshot could see it.
	floorLag = 2000
	floorAge = time.Second
	// scanEvery is how often a claim looks at everything that is ready, for what
	// took its turn long before it was committed; one that looks for what fell due
	// does so each time, if it is cheap: there are some of these in a second. If it
	// is not, it takes a twentieth of the time, but for looks that take longer than
	// half a second, and the next claim begins floorLag before what it found, without
	// waiting for floorAge.
	scanEvery  = time.Second
	scanLatest = 10 * time.Second
	scanShare  = 20
	cheap      = 20 * time.Millisecond
)

// floors are where the claims of each consumer begin.
type floors struct {
	// span is how many numbers a call takes that takes one.
	span int64
	mu   sync.Mutex
	all  map[string]*floor
}

// A floor follows the turns of what was claimed here.
type floor struct {
	from   int64
	recent []turn
	count  int       // messages in recent
	scan   time.Time // when to look at everything again
	spare  time.Time // from when on that costs no more than it may
}

// A turn is the last one of a claim of so many messages.
type turn struct {
	position int64
	messages int
	at       time.Time
}

// of gives where a claim is to begin. note must be told what it brought.
func (f *floors) of(req box.ClaimRequest) (from int64, note func([]claimed)) {
	if req.Suspect {
		return 0, func([]claimed) {}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[string]*floor{}
	}
	own := f.all[req.Consumer]
	if own == nil {
		own = &floor{}
		f.all[req.Consumer] = own
	}
	now := time.Now()
	own.rise(now)
	if from = own.from; !now.Before(own.scan) || (!req.ReadyOnly && !now.Before(own.spare)) {
		from = 0
		own.scan = now.Add(scanEvery)
	}
	return from, func(all []claimed) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if from == 0 {
			cost := time.Since(now)
			own.scan = now.Add(max(scanEvery, min(scanShare*cost, scanLatest), 2*cost))
			if own.spare = now; cost > cheap {
				own.spare = own.scan
				own.from = max(own.from, firstTurn(all)-floorLag*f.span)
			}
		}
		last := lastTurn(all)
		if from == 0 && len(all) == req.Limit && last < own.from {
			own.scan = time.Time{} // there is more below the floor
		}
		own.note(all, last)
	}
}

func firstTurn(all []claimed) (first int64) {
	for _, c := range all {
		if first == 0 || c.turn < first { // turns are counted from 1
			first = c.turn
		}
	}
	return first
}

func lastTurn(all []claimed) (last int64) {
	for _, c := range all {
		last = max(last, c.turn)
	}
	return last
}

func (f *floor) note(all []claimed, last int64) {
	if len(all) == 0 {
		return
	}
	f.recent = append(f.recent, turn{last, len(all), time.Now()})
	f.count += len(all)
	f.rise(time.Now())
}

func (f *floor) rise(now time.Time) {
	for len(f.recent) > 0 && (f.count-f.recent[0].messages >= floorLag || now.Sub(f.recent[0].at) >= floorAge) {
		f.from = max(f.from, f.recent[0].position)
		f.count -= f.recent[0].messages
		f.recent = f.recent[1:]
	}
}

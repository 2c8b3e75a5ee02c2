package box

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom"
)

const (
	// A few flushes are under way at once, so that the database can commit some
	// while it takes in others. Each costs the same, however little it takes
	// along: one more goes only with so many messages for each that is under way.
	flights = 4
	load    = 12
	// awaitTime bounds the wait for callers that can run.
	awaitTime = 200 * time.Microsecond
	// overdueAfter is how long messages wait for others to come along while no
	// flush returns: those under way may hang.
	overdueAfter = 50 * time.Millisecond
	// What one flush takes along at most.
	flushMessages = 500
	flushBytes    = 4 << 20
	// flushTime bounds a flush, which has no caller of its own.
	flushTime = 30 * time.Second
	// Messages that are held elsewhere wait on the side, so many at once and in
	// all.
	sideways  = 2
	sideQueue = 1000
	// sideTime bounds the wait behind others on the side.
	sideTime = 30 * time.Second
)

// A gather lets concurrent callers share commits. While flushes are under way
// the next batch gathers; the moment one returns, that batch goes. A lone caller
// waits for nobody.
type gather struct {
	put func(ctx context.Context, puts []Put) ([]PutResult, error)

	flushes sync.WaitGroup

	mu      sync.Mutex
	limit   int // of flushes at once
	flying  int
	waiting []*arrival
	taken   int  // flushes that took messages along
	watched bool // somebody looks after overdueAfter
	overdue bool // the next flush goes with however little
	// side are the messages that somebody's transaction holds, and those that must
	// not overtake them; aside counts them by their queue.
	side   [sideways][]*arrival
	moving [sideways]bool
	aside  map[string]int
	length int
}

// A call is what one caller waits for.
type call struct {
	open     atomic.Int32 // arrivals without a result
	done     chan struct{}
	arrivals []*arrival
	results  []PutResult
	// Most calls have one message.
	first [1]*arrival
	one   [1]arrival
}

func newCall(puts []Put) *call {
	c := &call{done: make(chan struct{}), results: make([]PutResult, len(puts))}
	c.open.Store(int32(len(puts))) //nolint:gosec // a batch in memory is not that large
	arrivals := c.one[:]
	c.arrivals = c.first[:]
	if len(puts) != 1 {
		arrivals, c.arrivals = make([]arrival, len(puts)), make([]*arrival, len(puts))
	}
	for i := range puts {
		puts[i].Divert = true
		arrivals[i] = arrival{call: c, put: &puts[i], out: &c.results[i]}
		c.arrivals[i] = &arrivals[i]
	}
	return c
}

// An arrival is one message of a call.
type arrival struct {
	call *call
	put  *Put
	// out and err are set under the gather's lock, and read after the call is done.
	out   *PutResult
	err   error
	taken bool
	aside time.Time // since when it waits on the side
}

// queue names what keeps its order on the side: the group, else the key.
func (a *arrival) queue() string {
	if m := &a.put.Message; m.Group == "" {
		return m.Source + "\x00" + m.ID
	}
	return a.put.Message.Group
}

func newGather(limit int, put func(context.Context, []Put) ([]PutResult, error)) *gather {
	return &gather{limit: limit, put: put, aside: map[string]int{}}
}

// do takes messages in together with those of other callers. When ctx ends
// before they were taken along, nothing was done; when it ends after that, nobody
// knows yet, and the puts are still in use.
func (g *gather) do(ctx context.Context, puts []Put) ([]PutResult, error) {
	c := newCall(puts)
	g.mu.Lock()
	g.waiting = append(g.waiting, c.arrivals...)
	g.fly()
	g.mu.Unlock()
	select {
	case <-c.done:
	case <-ctx.Done():
		if g.withdraw(c) {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %w", postroom.ErrUnknown, ctx.Err())
	}
	if !slices.ContainsFunc(c.arrivals, func(a *arrival) bool { return a.err == nil }) {
		return nil, c.arrivals[0].err
	}
	return c.results, nil
}

// close waits for the flushes under way.
func (g *gather) close(ctx context.Context) error {
	idle := make(chan struct{})
	go func() {
		g.flushes.Wait()
		close(idle)
	}()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// withdraw takes a call back, unless a part of it is under way already.
func (g *gather) withdraw(c *call) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range c.arrivals {
		if a.taken {
			return false
		}
	}
	kept := g.waiting[:0:0]
	for _, a := range g.waiting {
		if a.call != c {
			kept = append(kept, a)
		}
	}
	g.waiting = kept
	return true
}

// fly starts a flush if there is enough to take along and one may start. The
// caller holds the lock.
func (g *gather) fly() {
	switch {
	case len(g.waiting) == 0 || g.flying >= g.limit:
	case g.enough(g.flying):
		g.flying++
		g.flushes.Go(g.flush)
	case !g.watched:
		g.watched = true
		taken := g.taken
		time.AfterFunc(overdueAfter, func() { g.watch(taken) })
	}
}

// enough tells whether a flush beside so many others is worth its cost.
func (g *gather) enough(others int) bool { return g.overdue || len(g.waiting) >= others*load }

// watch lets go what waits, if nothing went since so many had been taken.
func (g *gather) watch(taken int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.watched, g.overdue = false, g.taken == taken
	g.fly()
}

// flush commits what has gathered, again and again until nothing has. The parts
// of a call that is too large for one commit go one after the other: within a
// call, order is promised.
func (g *gather) flush() {
	for {
		g.await()
		g.mu.Lock()
		if len(g.waiting) == 0 || !g.enough(g.flying-1) {
			g.flying--
			g.fly() // so that somebody looks after what is left
			g.mu.Unlock()
			return
		}
		batch := g.take()
		g.fly()
		g.mu.Unlock()
		for len(batch) > 0 {
			n := fit(batch)
			g.commit(batch[:n])
			batch = batch[n:]
		}
	}
}

// await lets callers that can run now come along, and those that they let run, for
// as long as that takes no time: where others keep the processors busy, somebody
// would always have come by the time that it is one's turn again.
func (g *gather) await() {
	begin := time.Now()
	for before := -1; ; {
		runtime.Gosched()
		g.mu.Lock()
		n := len(g.waiting)
		g.mu.Unlock()
		if n <= before || n >= flushMessages || time.Since(begin) >= awaitTime {
			return
		}
		before = n
	}
}

// take removes what the next flush takes along: what fits into a commit, and the
// rest of the last call.
func (g *gather) take() []*arrival {
	n := fit(g.waiting)
	for 0 < n && n < len(g.waiting) && g.waiting[n].call == g.waiting[n-1].call {
		n++
	}
	batch := g.waiting[:n:n]
	g.waiting = g.waiting[n:]
	g.taken++
	g.overdue = false
	for _, a := range batch {
		a.taken = true
	}
	return batch
}

// fit is how many go into one commit, at least one if there are any.
func fit(arrivals []*arrival) (n int) {
	for size := 0; n < len(arrivals) && n < flushMessages && size < flushBytes; n++ {
		size += len(arrivals[n].put.Message.Payload)
	}
	return n
}

// commit puts a batch into the store. What the database refuses is halved until
// the message that it does not like fails alone.
func (g *gather) commit(batch []*arrival) {
	batch = g.ahead(batch)
	if len(batch) == 0 {
		return
	}
	results, err := g.send(batch)
	if errors.Is(err, ErrRefused) && len(batch) > 1 {
		g.commit(batch[:len(batch)/2])
		g.commit(batch[len(batch)/2:])
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, a := range batch {
		switch {
		case err != nil:
			a.finish(PutResult{Err: err}, err)
		case errors.Is(results[i].Err, ErrHeld):
			g.divert(a)
		default:
			a.finish(results[i], nil)
		}
	}
}

// ahead leaves out what must not overtake a message on the side, and lets it join
// that one.
func (g *gather) ahead(batch []*arrival) []*arrival {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.aside) == 0 {
		return batch
	}
	ahead := make([]*arrival, 0, len(batch))
	for _, a := range batch {
		if g.aside[a.queue()] > 0 {
			g.divert(a)
		} else {
			ahead = append(ahead, a)
		}
	}
	return ahead
}

func (g *gather) send(batch []*arrival) ([]PutResult, error) {
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	puts := putsPool.Get().(*[]Put)
	defer func() {
		clear(*puts)
		putsPool.Put(puts)
	}()
	*puts = (*puts)[:0]
	for _, a := range batch {
		*puts = append(*puts, *a.put)
	}
	return g.put(ctx, *puts)
}

// putsPool lends the puts of a flush, which are large and short-lived. Stores do
// not keep them.
var putsPool = sync.Pool{New: func() any { return new([]Put) }}

func (a *arrival) finish(r PutResult, err error) {
	*a.out, a.err = r, err
	if a.call.open.Add(-1) == 0 {
		close(a.call.done)
	}
}

var sideSeed = maphash.MakeSeed()

// divert lets a message wait on the side. The caller holds the lock.
func (g *gather) divert(a *arrival) {
	if g.length >= sideQueue {
		a.finish(PutResult{Err: postroom.ErrInProgress}, nil)
		return
	}
	a.put.Divert, a.aside = false, time.Now()
	g.aside[a.queue()]++
	g.length++
	way := maphash.String(sideSeed, a.queue()) % sideways
	g.side[way] = append(g.side[way], a)
	if !g.moving[way] {
		g.moving[way] = true
		g.flushes.Go(func() { g.wait(way) })
	}
}

// wait puts messages from the side into the store, one after the other: each
// waits there for whoever holds it.
func (g *gather) wait(way uint64) {
	for {
		g.mu.Lock()
		if len(g.side[way]) == 0 {
			g.moving[way] = false
			g.mu.Unlock()
			return
		}
		a := g.side[way][0]
		g.mu.Unlock()
		results, err := []PutResult{{Err: postroom.ErrInProgress}}, error(nil)
		if time.Since(a.aside) < sideTime {
			results, err = g.send([]*arrival{a})
		}
		g.mu.Lock()
		if err != nil {
			a.finish(PutResult{Err: err}, err)
		} else {
			a.finish(results[0], nil)
		}
		g.side[way] = g.side[way][1:]
		g.length--
		if g.aside[a.queue()]--; g.aside[a.queue()] == 0 {
			delete(g.aside, a.queue())
		}
		g.mu.Unlock()
	}
}

// Package park wraps a database/sql driver so that a test can force the order in
// which sessions go: it parks a session at a chosen statement until the test lets
// it go on, and loses the answer to a statement that the server has carried out.
package park

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Names of what a driver does besides running statements.
const (
	Begin    = "BEGIN"
	Commit   = "COMMIT"
	Rollback = "ROLLBACK"
	// Any is whatever comes next.
	Any = ""
)

// When says on which side of a statement something happens.
type When uint8

// The sides of a statement.
const (
	Before When = iota
	After
)

// ErrLost is what a driver gives when the connection breaks: whether the server
// carried out what it was sent is not known.
var ErrLost error = lostError{}

type lostError struct{}

func (lostError) Error() string { return "park: unexpected EOF: the answer was lost" }
func (lostError) Unwrap() error { return io.ErrUnexpectedEOF }

// patience is how long a test waits for what must happen. It is only ever used
// up by a test that fails.
const patience = 2 * time.Minute

// traced is how much of what ran is remembered at least.
const traced = 1000

// A Lot holds the places at which sessions stop. The sessions are those of the
// pools that it opened: give each party of a race a lot of its own.
type Lot struct {
	mu     sync.Mutex
	spots  []*Spot
	counts map[string]int
	trace  []string
	skew   time.Duration
	reword func(query string) string
}

// A Spot stops the session that comes to it.
type Spot struct {
	lot     *Lot
	when    When
	what    string
	within  string
	skip    int
	every   bool
	err     error
	done    bool
	arrived chan struct{}
	release chan struct{}
	met     sync.Once
	freed   sync.Once
}

// New makes a lot where nobody stops.
func New() *Lot { return &Lot{counts: map[string]int{}} }

// Park stops the next session that comes to what: the name of a statement of
// Postroom's, one of the constants above, or a part of any other statement.
func (l *Lot) Park(when When, what string) *Spot { return l.ParkNth(when, what, 1) }

// ParkNth stops the nth session from now on.
func (l *Lot) ParkNth(when When, what string, nth int) *Spot {
	return l.add(&Spot{when: when, what: what, skip: nth - 1, arrived: make(chan struct{}), release: make(chan struct{})})
}

// ParkWithin stops the next session whose transaction has run a statement that
// part is in.
func (l *Lot) ParkWithin(when When, what, part string) *Spot {
	return l.add(&Spot{when: when, what: what, within: part, arrived: make(chan struct{}), release: make(chan struct{})})
}

// FailAll gives err each time, before the server learns of it, until the spot is
// cancelled.
func (l *Lot) FailAll(what string, err error) *Spot {
	s := &Spot{what: what, every: true, err: err, arrived: make(chan struct{}), release: make(chan struct{})}
	s.Release()
	return l.add(s)
}

// Fail gives err for the nth from now on, before the server learns of it or
// after the server has done it. ErrLost also breaks the connection.
func (l *Lot) Fail(when When, what string, nth int, err error) *Spot {
	s := &Spot{when: when, what: what, skip: nth - 1, err: err, arrived: make(chan struct{}), release: make(chan struct{})}
	s.Release()
	return l.add(s)
}

func (l *Lot) add(s *Spot) *Spot {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.lot = l
	l.spots = append(l.spots, s)
	return s
}

// Wait waits until a session stands at the spot.
func (s *Spot) Wait(t testing.TB) {
	t.Helper()
	select {
	case <-s.arrived:
	case <-time.After(patience):
		s.lot.mu.Lock()
		defer s.lot.mu.Unlock()
		t.Fatalf("nobody came to %q; what ran: %s", s.what, strings.Join(s.lot.trace, " "))
	}
}

// Arrived is closed when a session has come to the spot.
func (s *Spot) Arrived() <-chan struct{} { return s.arrived }

// Cancel lets whoever stands at the spot go on, and nobody come to it.
func (s *Spot) Cancel() {
	s.lot.mu.Lock()
	s.done = true
	s.lot.mu.Unlock()
	s.Release()
}

// Release lets the session go on. Once released, nobody stops there.
func (s *Spot) Release() { s.freed.Do(func() { close(s.release) }) }

func (s *Spot) isFree() bool {
	select {
	case <-s.release:
		return true
	default:
		return false
	}
}

// Count is how often a statement was sent.
func (l *Lot) Count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, named := l.counts[what]
	if named {
		return n
	}
	for name, c := range l.counts {
		if matches(name, what) {
			n += c
		}
	}
	return n
}

// Trace gives the names of what ran lately, in order.
func (l *Lot) Trace() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.trace...)
}

func matches(name, what string) bool {
	return name == what || what == Any || (strings.HasPrefix(name, "SQL ") && strings.Contains(name, what))
}

// find gives the spots that a session stops at. ran is what its transaction has
// run so far.
func (l *Lot) find(when When, name, ran string) (found []*Spot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if when == Before {
		l.counts[name]++
		l.trace = append(l.trace, name)
		if len(l.trace) > 2*traced {
			l.trace = append([]string(nil), l.trace[traced:]...)
		}
	}
	l.spots = slices.DeleteFunc(l.spots, func(s *Spot) bool { return s.done && s.isFree() })
	for _, s := range l.spots {
		if s.done || s.when != when || !matches(name, s.what) || !strings.Contains(ran, s.within) {
			continue
		}
		if s.skip > 0 {
			s.skip--
			continue
		}
		s.done = !s.every
		found = append(found, s)
	}
	return found
}

// stop holds a session and says what it is told. It doesn't heed the context: a
// session that is parked has stopped.
func (s *Spot) stop() error {
	s.met.Do(func() { close(s.arrived) })
	<-s.release
	return s.err
}

// nameOf gives the name under which Postroom sends a statement, or its text.
func nameOf(query string) string {
	if rest, ok := strings.CutPrefix(query, "/* postroom:"); ok {
		if name, _, ok := strings.Cut(rest, " */"); ok {
			return name
		}
	}
	return "SQL " + query
}

// around runs do between what is to happen before and after it.
func (l *Lot) around(name, ran string, do func() error) error {
	for _, s := range l.find(Before, name, ran) {
		if err := s.stop(); err != nil {
			return err
		}
	}
	err := do()
	for _, s := range l.find(After, name, ran) {
		if stopErr := s.stop(); stopErr != nil {
			return stopErr
		}
	}
	return err
}

// Go runs f on its own and gives a function that waits for its end.
func Go(t testing.TB, f func(ctx context.Context)) (wait func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(t.Context())
	}()
	return func() {
		t.Helper()
		select {
		case <-done:
		case <-time.After(patience):
			t.Fatal("it did not come to an end")
		}
	}
}

package main

import "time"

// plainEvery is how often progress is written where it can't be written over.
const plainEvery = 5 * time.Second

// progress shows how far a command is: on one line of a terminal, elsewhere on
// a line of its own every few seconds.
type progress struct {
	term  *terminal
	last  time.Time
	shown bool
}

func newProgress(term *terminal) *progress { return &progress{term: term, last: time.Now()} }

func (p *progress) show(format string, args ...any) {
	switch {
	case p.term.live:
		p.term.say("\r\x1b[K"+format, args...)
		p.shown = true
	case time.Since(p.last) >= plainEvery:
		p.term.say(format+"\n", args...)
		p.last = time.Now()
	}
}

// end clears the line: the result says the rest.
func (p *progress) end() {
	if p.shown {
		p.term.say("\r\x1b[K")
	}
}

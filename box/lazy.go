package box

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A lazyContext can be ended like one of context.WithCancelCause. Few runs wait for
// the end of theirs, so that all it takes to tell them is made when they ask for that.
// Until then its parent, which must be one of package context, is asked each time.
type lazyContext struct {
	parent context.Context

	mu     sync.Mutex
	made   context.Context
	cancel context.CancelCauseFunc // of made
	cause  error                   // why it ended, if it did so before it was made
}

// end ends the context, unless it has ended.
func (c *lazyContext) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.made != nil:
		c.cancel(cause)
	case c.cause == nil && c.parent.Err() == nil:
		c.cause = cause
	}
}

// full makes the context.
func (c *lazyContext) full() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.made != nil:
	case c.cause == nil:
		c.made, c.cancel = context.WithCancelCause(c.parent)
	default: // what became of the parent since then does not matter
		c.made, c.cancel = context.WithCancelCause(context.WithoutCancel(c.parent))
		c.cancel(c.cause)
	}
	return c.made
}

func (c *lazyContext) Deadline() (time.Time, bool) { return c.parent.Deadline() }

func (c *lazyContext) Done() <-chan struct{} { return c.full().Done() }

// Err needs nothing to be made: handlers ask between two steps.
func (c *lazyContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.made != nil:
		return c.made.Err()
	case c.cause != nil:
		return context.Canceled
	}
	return c.parent.Err()
}

// String is a name, as contexts of package context have one.
func (c *lazyContext) String() string { return contextName(c.parent) + ".WithCancel" }

func contextName(ctx context.Context) string {
	if s, ok := ctx.(fmt.Stringer); ok {
		return s.String()
	}
	return fmt.Sprintf("%T", ctx)
}

// Value is also how package context finds what it can cancel.
func (c *lazyContext) Value(key any) any { return c.full().Value(key) }

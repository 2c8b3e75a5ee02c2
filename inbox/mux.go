package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// A Mux finds the handler of a topic. Topics are case-sensitive. Patterns are
//
//	order.paid   this topic
//	order.*      each topic that begins with "order."; the longest pattern wins
//	*            each topic that no other pattern matches
//
// A registration that can't work is returned as an error, and is returned again
// by Worker.Run, so that a program need not check each one.
type Mux struct {
	mu         sync.Mutex
	routes     map[string]*route
	middleware []Middleware
	errs       []error
}

// A Middleware wraps the handlers of a Mux, except batch handlers. What it wraps
// may run in a transaction: TxFrom gives it.
type Middleware func(next postroom.Handler) postroom.Handler

// A BatchHandler handles several messages in one call and one transaction of the
// store. The outcomes run parallel to the messages and are their verdicts; nil
// says that all succeeded. What was written commits with them, also for messages
// that failed, unless err is set: then all is rolled back and err is everyone's
// verdict.
type BatchHandler func(ctx context.Context, tx postroom.Tx, msgs []*postroom.Message) (outcomes []error, err error)

// HandlerOptions of one registration. The zero value consists entirely of
// defaults.
type HandlerOptions struct {
	// Name is recorded with outcomes. Default: the pattern.
	Name string
	// Timeout ends the context of a run that takes longer, which then failed.
	// Default: the worker's.
	Timeout time.Duration
	// MaxAttempts is after how many failed runs a message is Dead. Default: the
	// worker's.
	MaxAttempts int
	// Backoff gives the delay before the next run. Default: the worker's.
	Backoff postroom.Backoff
	// Rules say what to do with certain errors. The first that matches counts;
	// the worker's rules follow. Default: none.
	Rules []Rule
}

// route is a registration.
type route struct {
	pattern string
	opts    HandlerOptions
	handler postroom.Handler
	tx      postroom.TxHandler // the same, if it is transactional
	batch   BatchHandler
}

// NewMux makes a Mux without handlers.
func NewMux() *Mux { return &Mux{routes: map[string]*route{}} }

// Handle registers a handler. A postroom.TxHandler runs in a transaction, in
// which the message becomes Done.
func (x *Mux) Handle(pattern string, h postroom.Handler) error {
	return x.HandleWith(pattern, h, HandlerOptions{})
}

// HandleFunc registers a function.
func (x *Mux) HandleFunc(pattern string, h func(context.Context, *postroom.Message) error) error {
	if h == nil {
		return x.add(&route{pattern: pattern})
	}
	return x.HandleWith(pattern, postroom.HandlerFunc(h), HandlerOptions{})
}

// HandleWith registers a handler with options.
func (x *Mux) HandleWith(pattern string, h postroom.Handler, o HandlerOptions) error {
	r := &route{pattern: pattern, opts: o, handler: h}
	r.tx, _ = h.(postroom.TxHandler)
	return x.add(r)
}

// HandleBatch registers a batch handler. A worker gives it as many messages at
// once as were claimed together, at most as many as it has slots.
func (x *Mux) HandleBatch(pattern string, h BatchHandler, o HandlerOptions) error {
	return x.add(&route{pattern: pattern, opts: o, batch: h})
}

// Use adds middleware for all handlers. The first that was added is outermost.
func (x *Mux) Use(m ...Middleware) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.middleware = append(x.middleware, m...)
}

func (x *Mux) add(r *route) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.check(r); err != nil {
		err = fmt.Errorf("handler for %q: %w", r.pattern, err)
		x.errs = append(x.errs, err)
		return err
	}
	r.opts.Name = cmp.Or(r.opts.Name, r.pattern)
	x.routes[r.pattern] = r
	return nil
}

func (x *Mux) check(r *route) error {
	arg := func(argument, reason string) error {
		return &postroom.ArgumentError{Argument: argument, Reason: reason}
	}
	if err := box.CheckPattern(r.pattern); err != nil {
		return err
	}
	switch {
	case r.handler == nil && r.batch == nil:
		return arg("handler", "is nil")
	case x.routes[r.pattern] != nil:
		return arg("pattern", "has a handler already")
	case r.opts.Timeout < 0:
		return arg("Timeout", "is negative")
	case r.opts.MaxAttempts < 0:
		return arg("MaxAttempts", "is negative")
	}
	return nil
}

// table is what a worker looks up: the routes with their middleware, unchanged
// by later registrations.
type table struct{ box.Topics[*route] }

func (x *Mux) table() (*table, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := errors.Join(x.errs...); err != nil {
		return nil, err
	}
	t := &table{}
	for pattern, r := range x.routes {
		t.Set(pattern, x.wrapped(*r))
	}
	return t, nil
}

// wrapped puts the middleware around a handler, once. A transactional one finds
// its transaction in the context.
func (x *Mux) wrapped(r route) *route {
	if r.handler == nil {
		return &r
	}
	if tx := r.tx; tx != nil {
		r.handler = postroom.HandlerFunc(func(ctx context.Context, m *postroom.Message) error {
			t, _ := TxFrom(ctx)
			return tx.HandleTx(ctx, t, m)
		})
	}
	for _, m := range slices.Backward(x.middleware) {
		r.handler = m(r.handler)
	}
	return &r
}

// transactional tells whether a handler needs a connection of its own.
func (t *table) transactional() bool {
	for r := range t.All() {
		if r.tx != nil || r.batch != nil {
			return true
		}
	}
	return false
}

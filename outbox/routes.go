package outbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// Routes say which sender takes a topic. Topics are case-sensitive. Patterns are
//
//	order.paid   this topic
//	order.*      each topic that begins with "order."; the longest pattern wins
//	*            each topic that no other pattern matches
//
// A message whose topic has no route is Dead, with the reason.
type Routes struct {
	mu     sync.Mutex
	routes map[string]*route
	errs   []error
}

// route is a registration; its pattern is recorded with what was sent by it.
type route struct {
	pattern string
	sender  postroom.Sender
}

// NewRoutes makes Routes without a sender.
func NewRoutes() *Routes { return &Routes{routes: map[string]*route{}} }

// To makes Routes that give every topic to one sender.
func To(s postroom.Sender) *Routes {
	r := NewRoutes()
	_ = r.Send("*", s) // Run returns it
	return r
}

// Send registers the sender of a pattern. A registration that can't work is
// returned again by Relay.Run, so that a program need not check each one.
func (r *Routes) Send(pattern string, s postroom.Sender) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := box.CheckPattern(pattern)
	switch {
	case err != nil:
	case s == nil:
		err = argument("sender", "is nil")
	case r.routes[pattern] != nil:
		err = argument("pattern", "has a sender already")
	default:
		r.routes[pattern] = &route{pattern, s}
		return nil
	}
	err = fmt.Errorf("route for %q: %w", pattern, err)
	r.errs = append(r.errs, err)
	return err
}

// table is what a relay looks up, unchanged by later registrations.
type table struct {
	box.Topics[*route]
	patterns []string
}

func (r *Routes) table() (*table, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := errors.Join(r.errs...); err != nil {
		return nil, err
	}
	t := &table{}
	for pattern, route := range r.routes {
		t.Set(pattern, route)
		t.patterns = append(t.patterns, pattern)
	}
	slices.Sort(t.patterns)
	return t, nil
}

// noRoute is what a message dies with whose topic nobody takes.
func (t *table) noRoute(topic string) string {
	if len(t.patterns) == 0 {
		return fmt.Sprintf("no route for topic %q: the relay has no routes", topic)
	}
	return fmt.Sprintf("no route for topic %q: the relay has %s", topic, strings.Join(t.patterns, ", "))
}

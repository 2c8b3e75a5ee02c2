package box

import (
	"cmp"
	"context"
	"maps"

	"github.com/postroom/postroom"
)

type messageKey struct{}

// WithMessage lets code below a handler find the message that it works on.
func WithMessage(ctx context.Context, m *postroom.Message) context.Context {
	return &messageContext{ctx, m}
}

type messageContext struct {
	context.Context
	message *postroom.Message
}

func (c *messageContext) String() string { return contextName(c.Context) + ".WithMessage" }

func (c *messageContext) Value(key any) any {
	if key == (messageKey{}) {
		return c.message
	}
	return c.Context.Value(key)
}

// MessageFrom gives the message that the surrounding handler works on.
func MessageFrom(ctx context.Context) (*postroom.Message, bool) {
	m, ok := ctx.Value(messageKey{}).(*postroom.Message)
	return m, ok
}

// traceHeaders carry W3C trace context.
var traceHeaders = []string{"traceparent", "tracestate"}

// Follow gives a message that another one led to: of what is not set, its
// causation is the other, and correlation and trace are taken over.
func Follow(m postroom.Message, cause *postroom.Message) postroom.Message {
	m.CausationID = cmp.Or(m.CausationID, cause.ID)
	m.CorrelationID = cmp.Or(m.CorrelationID, cause.CorrelationID, cause.ID)
	m.Headers = maps.Clone(m.Headers)
	// A tracestate belongs to its traceparent: they are taken over together.
	if _, traced := m.Headers[traceHeaders[0]]; traced {
		return m
	}
	for _, h := range traceHeaders {
		v, traced := cause.Headers[h]
		if !traced {
			continue
		}
		if m.Headers == nil {
			m.Headers = map[string]string{}
		}
		m.Headers[h] = v
	}
	return m
}

type committedKey struct{}

// Committing lets code below a handler ask to be called after the commit of the
// transaction that it runs in; committed calls what was asked for.
func Committing(ctx context.Context) (below context.Context, committed func()) {
	var calls []func()
	below = context.WithValue(ctx, committedKey{}, func(call func()) { calls = append(calls, call) })
	return below, func() {
		for _, call := range calls {
			call()
		}
	}
}

// OnCommit has call run after the commit of the transaction that the surrounding
// handler runs in, or never when there is no such handler. It is for hints: a
// crash at that moment loses the call.
func OnCommit(ctx context.Context, call func()) {
	if ask, ok := ctx.Value(committedKey{}).(func(func())); ok {
		ask(call)
	}
}

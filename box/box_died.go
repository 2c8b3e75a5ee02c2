package box

import (
	"context"
	"log/slog"

	"github.com/postroom/postroom"
)

// died reports a death that is committed.
func (b *Box) died(ctx context.Context, key postroom.Key, topic, text string, m *postroom.Message) {
	b.count(topic, CountDead, 1)
	b.log.LogAttrs(ctx, slog.LevelError, "message is dead", append(keyAttrs(key, topic), slog.String("error", text))...)
	e := postroom.DiedEvent{Scope: b.scope, Key: key, Topic: topic, Error: text, Message: m}
	b.observe.Died(ctx, e)
	b.callOnDead(ctx, e)
}

// callOnDead keeps a panic of the hook from ending the worker.
func (b *Box) callOnDead(ctx context.Context, e postroom.DiedEvent) {
	if b.opts.OnDead == nil {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			b.log.ErrorContext(ctx, "OnDead panicked", "error", postroom.Recovered(v))
		}
	}()
	b.opts.OnDead(ctx, e)
}

// lost reports an expired lease that was ended.
func (b *Box) lost(ctx context.Context, key postroom.Key, topic string, n int) {
	b.count(topic, CountLost, 1)
	b.log.LogAttrs(ctx, slog.LevelWarn, "lease was lost", append(keyAttrs(key, topic), slog.Int("lost", n))...)
	b.observe.Lost(ctx, postroom.LostEvent{Scope: b.scope, Key: key, Topic: topic, Lost: n})
}

// Overdue reports a message that has waited for too long.
func (b *Box) Overdue(ctx context.Context, r *Record) {
	b.count(r.Topic, CountOverdue, 1)
	b.LogAbout(ctx, slog.LevelWarn, "message is overdue", &r.Message,
		slog.String("group", r.Group), slog.String("stage", r.Stage.String()),
		slog.Time("since", r.FirstSeen), slog.String("error", r.LastError))
}

// Unhandled reports a message that is released because its topic has no handler.
func (b *Box) Unhandled(ctx context.Context, m *postroom.Message) {
	b.count(m.Topic, CountUnhandled, 1)
	b.observe.Unhandled(ctx, postroom.StartedEvent{Scope: b.scope, Message: m})
}

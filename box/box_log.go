package box

import (
	"context"
	"log/slog"

	"github.com/postroom/postroom"
)

// Lines never carry a payload, a header or a hash: attributes are made here, of
// names and numbers.

// perMessage is the level of lines that appear once per message.
func (b *Box) perMessage() slog.Level {
	if b.opts.LogMessages {
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// Attrs are the attributes that name a message.
func Attrs(m *postroom.Message) []slog.Attr {
	return []slog.Attr{
		slog.String("source", m.Source),
		slog.String("id", m.ID),
		slog.String("topic", m.Topic),
		slog.Int("attempt", m.Attempt),
	}
}

// LogMessage writes a line about one message at the level that the options give
// such lines.
func (b *Box) LogMessage(ctx context.Context, text string, m *postroom.Message, more ...slog.Attr) {
	b.LogAbout(ctx, b.perMessage(), text, m, more...)
}

// LogAbout writes a line about one message.
func (b *Box) LogAbout(ctx context.Context, level slog.Level, text string, m *postroom.Message, more ...slog.Attr) {
	if b.log.Enabled(ctx, level) {
		b.log.LogAttrs(ctx, level, text, append(Attrs(m), more...)...)
	}
}

func keyAttrs(k postroom.Key, topic string) []slog.Attr {
	return []slog.Attr{slog.String("source", k.Source), slog.String("id", k.ID), slog.String("topic", topic)}
}

// warnOnce keeps a setting that is used in each call from filling the log.
func (b *Box) warnOnce(ctx context.Context, text string, attrs ...any) {
	if _, known := b.warned.LoadOrStore(text, true); !known {
		b.log.WarnContext(ctx, text, attrs...)
	}
}

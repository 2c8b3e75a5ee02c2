package box

import (
	"context"
	"log/slog"
	"time"

	"github.com/postroom/postroom"
)

// Observe runs a handler: what it does is told to logs and observers, and a panic
// is an error.
func (b *Box) Observe(ctx context.Context, m *postroom.Message, handler string, run func(context.Context) error) error {
	ctx = b.started(ctx, m, handler)
	began := time.Now()
	err := Safely(ctx, run)
	b.finished(ctx, m, handler, time.Since(began), err)
	return err
}

func (b *Box) started(ctx context.Context, m *postroom.Message, handler string) context.Context {
	ctx = b.observe.Started(ctx, postroom.StartedEvent{Scope: b.scope, Message: m, Handler: handler})
	b.LogMessage(ctx, "handler runs", m, slog.String("handler", handler))
	return ctx
}

func (b *Box) finished(ctx context.Context, m *postroom.Message, handler string, took time.Duration, err error) {
	v, _, _ := postroom.VerdictOf(err)
	b.observe.Finished(ctx, postroom.FinishedEvent{
		Scope: b.scope, Message: m, Handler: handler, Verdict: v, Err: err, Took: took,
	})
	attrs := []slog.Attr{slog.String("handler", handler), slog.String("verdict", v.String()), slog.Duration("took", took)}
	if err != nil && v != postroom.VerdictDiscard {
		b.LogAbout(ctx, slog.LevelError, "handler failed", m, append(attrs, slog.String("error", postroom.ErrorText(err.Error())))...)
		return
	}
	b.LogMessage(ctx, "handler finished", m, attrs...)
}

// ObserveBatch is Observe for a handler of many messages: each has a run, whose
// end finish reports.
func (b *Box) ObserveBatch(ctx context.Context, msgs []*postroom.Message, handler string) (finish func(verdicts []error, err error)) {
	runs := make([]context.Context, len(msgs))
	for i, m := range msgs {
		runs[i] = b.started(ctx, m, handler)
	}
	began := time.Now()
	return func(verdicts []error, err error) {
		took := time.Since(began)
		for i, m := range msgs {
			verdict := err
			if err == nil {
				verdict = verdicts[i]
			}
			b.finished(runs[i], m, handler, took, verdict)
		}
	}
}

// Safely turns a panic into an error.
func Safely(ctx context.Context, run func(context.Context) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = postroom.Recovered(v)
		}
	}()
	return run(ctx)
}

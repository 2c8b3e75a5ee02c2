package inbox

import (
	"context"
	"log/slog"
	"reflect"
	"runtime"
	"time"

	"github.com/postroom/postroom"
)

// observed runs a handler: what it does is told to logs and observers, and a
// panic is an error.
func (in *Inbox) observed(ctx context.Context, m *postroom.Message, handler string, run func(context.Context) error) error {
	b := in.box
	ctx = b.Observer().Started(ctx, postroom.StartedEvent{Scope: b.Scope(), Message: m, Handler: handler})
	b.LogMessage(ctx, "handler runs", m, slog.String("handler", handler))
	began := time.Now()
	err := safely(ctx, run)
	took := time.Since(began)
	v, _, _ := postroom.VerdictOf(err)
	b.Observer().Finished(ctx, postroom.FinishedEvent{
		Scope: b.Scope(), Message: m, Handler: handler, Verdict: v, Err: err, Took: took,
	})
	attrs := []slog.Attr{slog.String("handler", handler), slog.String("verdict", v.String()), slog.Duration("took", took)}
	if err != nil && v != postroom.VerdictDiscard {
		b.LogAbout(ctx, slog.LevelError, "handler failed", m, append(attrs, slog.String("error", postroom.ErrorText(err.Error())))...)
	} else {
		b.LogMessage(ctx, "handler finished", m, attrs...)
	}
	return err
}

// safely turns a panic into an error.
func safely(ctx context.Context, run func(context.Context) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = postroom.Recovered(v)
		}
	}()
	return run(ctx)
}

func funcName(f any) string {
	if fn := runtime.FuncForPC(reflect.ValueOf(f).Pointer()); fn != nil {
		return fn.Name()
	}
	return ""
}

// callerName names the function that many frames above this one.
func callerName(frames int) string {
	pc, _, _, ok := runtime.Caller(frames)
	if !ok {
		return ""
	}
	return runtime.FuncForPC(pc).Name()
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// rollback also works after the context has ended, and after a commit does
// nothing.
func rollback(ctx context.Context, tx interface{ Rollback(context.Context) error }) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	_ = tx.Rollback(ctx) // the transaction is given up; there is nothing left to do about it
}

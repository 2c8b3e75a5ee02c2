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
	ctx = in.started(ctx, m, handler)
	began := time.Now()
	err := safely(ctx, run)
	in.finished(ctx, m, handler, time.Since(began), err)
	return err
}

func (in *Inbox) started(ctx context.Context, m *postroom.Message, handler string) context.Context {
	ctx = in.box.Observer().Started(ctx, postroom.StartedEvent{Scope: in.box.Scope(), Message: m, Handler: handler})
	in.box.LogMessage(ctx, "handler runs", m, slog.String("handler", handler))
	return ctx
}

func (in *Inbox) finished(ctx context.Context, m *postroom.Message, handler string, took time.Duration, err error) {
	v, _, _ := postroom.VerdictOf(err)
	in.box.Observer().Finished(ctx, postroom.FinishedEvent{
		Scope: in.box.Scope(), Message: m, Handler: handler, Verdict: v, Err: err, Took: took,
	})
	attrs := []slog.Attr{slog.String("handler", handler), slog.String("verdict", v.String()), slog.Duration("took", took)}
	if err != nil && v != postroom.VerdictDiscard {
		in.box.LogAbout(ctx, slog.LevelError, "handler failed", m, append(attrs, slog.String("error", postroom.ErrorText(err.Error())))...)
		return
	}
	in.box.LogMessage(ctx, "handler finished", m, attrs...)
}

// observeBatch is observed for a handler of many messages: each has a run.
func (in *Inbox) observeBatch(ctx context.Context, msgs []*postroom.Message, handler string) (finish func(verdicts []error, err error)) {
	runs := make([]context.Context, len(msgs))
	for i, m := range msgs {
		runs[i] = in.started(ctx, m, handler)
	}
	began := time.Now()
	return func(verdicts []error, err error) {
		took := time.Since(began)
		for i, m := range msgs {
			verdict := err
			if err == nil {
				verdict = verdicts[i]
			}
			in.finished(runs[i], m, handler, took, verdict)
		}
	}
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

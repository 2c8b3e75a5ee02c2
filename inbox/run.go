package inbox

import (
	"context"
	"reflect"
	"runtime"
	"time"
)

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

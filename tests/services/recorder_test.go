package services_test

import (
	"fmt"
	"runtime"
	"testing"
)

// recorder stands in for the test that asks, and keeps what it was told.
type recorder struct {
	testing.TB
	result, message string
}

// outcome runs f as a test would be run and tells how it ended.
func outcome(t *testing.T, f func(t testing.TB)) (result, message string) {
	t.Helper()
	r := &recorder{TB: t, result: "returned"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r.result, r.message
}

func (r *recorder) Helper() {}

func (r *recorder) Skipf(format string, args ...any) { r.end("skipped", format, args) }

func (r *recorder) Fatalf(format string, args ...any) { r.end("failed", format, args) }

func (r *recorder) end(result, format string, args []any) {
	r.result, r.message = result, fmt.Sprintf(format, args...)
	runtime.Goexit()
}

package postroom

import (
	"bytes"
	"fmt"
	"runtime/debug"
)

// A PanicError is the verdict of a handler that panicked: a failure like any
// other, with the stack that led to it.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack) }

// Unwrap gives the panic's value when it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Recovered makes the error of a recovered panic. Call it in the deferred
// function that recovered.
func Recovered(value any) *PanicError {
	stack := debug.Stack()
	// What lies above the call of panic is our own recovery; it would push the
	// handler's frames out of the stored text.
	if _, below, found := bytes.Cut(stack, []byte("\npanic(")); found {
		if i := bytes.IndexByte(below, '\n'); i >= 0 {
			below = below[i+1:]
		}
		if i := bytes.IndexByte(below, '\n'); i >= 0 {
			below = below[i+1:]
		}
		stack = below
	}
	return &PanicError{Value: value, Stack: bytes.TrimSpace(stack)}
}

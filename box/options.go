package box

import (
	"fmt"
	"time"

	"github.com/postroom/postroom"
)

// Default sets an option that was left out, and refuses one that is negative.
func Default[T int | time.Duration](name string, value *T, or T) error {
	if *value == 0 {
		*value = or
	}
	if *value < 0 {
		return &postroom.ArgumentError{Argument: name, Reason: fmt.Sprintf("is %v, it must be positive", *value)}
	}
	return nil
}

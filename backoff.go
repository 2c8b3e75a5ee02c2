package postroom

import (
	"math/rand/v2"
	"time"
)

// A Backoff gives the delay before the next run. attempt counts the runs that
// failed, from 1.
type Backoff func(attempt int) time.Duration

// MaxBackoff is the longest delay of the default backoff.
const MaxBackoff = time.Minute

// DefaultBackoff is 2, 4, 8 … seconds, at most a minute: the smaller of
// 2^attempt seconds and 60 seconds.
func DefaultBackoff(attempt int) time.Duration {
	// 2^6 is past the maximum; more would overflow.
	exponent := min(max(attempt, 0), 6)
	return min(time.Duration(1<<exponent)*time.Second, MaxBackoff)
}

// Jitter spreads the delays of b by up to the given part (0.1 is ten percent)
// in both directions, so that messages that failed together don't come back
// together.
func Jitter(b Backoff, part float64) Backoff {
	return func(attempt int) time.Duration {
		d := float64(b(attempt))
		return time.Duration(d + d*part*(2*rand.Float64()-1)) //nolint:gosec // spreading load needs no secrecy
	}
}

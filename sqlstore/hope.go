package sqlstore

import (
	"sync/atomic"
	"time"
)

// hopeless is how long duplicates are expected after one.
const hopeless = time.Minute

// A hope is whether messages that arrive are expected to be new. A statement for
// new ones is cheaper, but a single duplicate fails it, and servers log that: so
// it is used after a minute without any.
type hope struct{ dashed atomic.Int64 }

func (h *hope) fresh() bool { return time.Now().UnixNano() >= h.dashed.Load() }

// dash says that there was a duplicate.
func (h *hope) dash() { h.dashed.Store(time.Now().Add(hopeless).UnixNano()) }

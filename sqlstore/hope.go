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
type hope struct{ dashed atomic.Pointer[time.Time] }

func (h *hope) fresh() bool {
	at := h.dashed.Load()
	return at == nil || time.Since(*at) >= hopeless
}

// dash says that there was a duplicate.
func (h *hope) dash() {
	now := time.Now()
	h.dashed.Store(&now)
}

// hopes reports whether the statement for new messages may be used, which may fail.
func (s *Store) hopes() bool {
	d, ok := s.db.(Discreet)
	return ok && d.Discreet() && (&session{store: s}).single("receive_new") && s.hope.fresh()
}

package box

import (
	"time"

	"github.com/postroom/postroom"
)

// A ClaimRequest asks for messages to work on.
type ClaimRequest struct {
	Consumer string
	Owner    string
	Lease    time.Duration
	Limit    int
	// Suspect claims one suspect instead, for a worker that holds no other lease.
	Suspect bool
	// ReadyOnly leaves alone what fell due and what lanes wait for: a worker
	// that claims many times between two polls need not look each time.
	ReadyOnly bool
	// Hold: if an expired message was the head of a lane, its group waits for it.
	Hold bool
	// Expired is called for each message that had expired: it is Dead now, and
	// not among those claimed. Nil: nobody is told.
	Expired func(m *postroom.Message)
}

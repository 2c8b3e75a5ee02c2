package box

import "time"

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
}

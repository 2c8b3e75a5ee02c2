package postroom

// A Result says what receiving or running one message did.
type Result struct {
	// Outcome is Accepted for a message that is new, or that Once or Guard ran.
	// It is zero when Err is set.
	Outcome Outcome
	// State is the state of the message after the call.
	State State
	// Mismatch: the key is known with another hash.
	Mismatch bool
	// Err is why this message, and perhaps only this one, was not taken in. Don't
	// acknowledge it.
	Err error
}

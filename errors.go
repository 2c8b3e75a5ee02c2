package postroom

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Errors that callers branch on.
var (
	// ErrInProgress: another holder works on the message right now. Don't
	// acknowledge it; the sender tries again.
	ErrInProgress = errors.New("postroom: message is in progress elsewhere")
	// ErrDead: the message is Dead and was not run. It waits for an operator.
	ErrDead = errors.New("postroom: message is dead")
	// ErrLeaseLost: the lease is no longer current, and nothing was changed.
	ErrLeaseLost = errors.New("postroom: lease is lost")
	// ErrLeased: the message is leased, so that it can't be moved by hand.
	ErrLeased = errors.New("postroom: message is leased")
	// ErrNotFound: there is no such message in a state that the operation is for.
	ErrNotFound = errors.New("postroom: message not found")
	// ErrDone: the message is done, so that requeueing it would repeat its
	// effect. Replay it explicitly if that is what you want.
	ErrDone = errors.New("postroom: message is done")
	// ErrPurged: the payload is past its retention, so that the message can't
	// run again.
	ErrPurged = errors.New("postroom: payload was purged")
	// ErrUnknown: whether the change was committed is not known. Don't
	// acknowledge; a redelivery is deduplicated. If your context ended, the payload
	// and the headers may still be read: don't use them for something else.
	ErrUnknown = errors.New("postroom: outcome unknown")
	// ErrRetry: the database gave up the caller's transaction (a deadlock, a
	// serialization failure). Roll back and repeat the whole transaction.
	ErrRetry = errors.New("postroom: repeat the transaction")
	// ErrForeignTx: the transaction belongs to another kind of store.
	ErrForeignTx = errors.New("postroom: transaction of another store")
	// ErrNoSchema: the tables are missing or older than this program needs.
	ErrNoSchema = errors.New("postroom: schema is missing or out of date")
	// ErrClosed: the store or box was closed.
	ErrClosed = errors.New("postroom: closed")
)

// An ArgumentError names an argument that can't be used and says why. Nothing
// was stored.
type ArgumentError struct {
	// Argument is what the caller passed: "source", "lease", "batch size".
	Argument string
	// Reason continues the sentence: "is empty".
	Reason string
}

func (e *ArgumentError) Error() string {
	return fmt.Sprintf("postroom: %s %s", e.Argument, e.Reason)
}

// maxErrorText keeps one failing handler from filling the tables.
const maxErrorText = 2000

// ErrorText prepares the text of an error for storage: valid UTF-8 without NUL,
// cut at 2,000 bytes on a rune boundary.
func ErrorText(s string) string {
	clean := make([]byte, 0, min(len(s), maxErrorText))
	for _, r := range s {
		if r == 0 {
			r = utf8.RuneError
		}
		if len(clean)+utf8.RuneLen(r) > maxErrorText {
			break
		}
		clean = utf8.AppendRune(clean, r)
	}
	return string(clean)
}

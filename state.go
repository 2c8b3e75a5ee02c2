package postroom

import "fmt"

// A State is where a message is on its way.
type State uint8

// The states of a message. StateNone is the state of one that is not there.
const (
	StateNone State = iota
	// StateSeen: its key was looked up before the message itself was received.
	StateSeen
	// StateProcessing: it waits to be handled or is being handled.
	StateProcessing
	// StateDone: it took effect, or was discarded.
	StateDone
	// StateDead: it failed for good and waits for an operator.
	StateDead
)

var stateNames = [...]string{"none", "seen", "processing", "done", "dead"}

func (s State) String() string { return nameOf(stateNames[:], int(s), "state") }

// ParseState is the inverse of State.String.
func ParseState(name string) (State, error) {
	for i, n := range stateNames {
		if n == name {
			return State(i), nil
		}
	}
	return 0, &ArgumentError{"state", fmt.Sprintf("%q is not one of seen, processing, done, dead", name)}
}

// A Stage says more precisely where a live message stands. Its numbers are
// stored.
type Stage uint8

// The stages of a live message.
const (
	StageNone Stage = 0
	// StageSeen: looked up, not yet received.
	StageSeen Stage = 1
	// StageIdle: processing, but without a topic no worker can take it.
	StageIdle Stage = 2
	// StageScheduled: due or to be retried later; then it is ready.
	StageScheduled Stage = 3
	// StageDeferred: in a group and due later; then it has arrived.
	StageDeferred Stage = 4
	// StageArrived: in a group, not yet sorted into its lane.
	StageArrived Stage = 5
	// StageQueued: in its lane, behind the head.
	StageQueued Stage = 6
	// StageReady: can be claimed.
	StageReady Stage = 7
	// StageSuspect: its process died repeatedly; claimed one at a time.
	StageSuspect Stage = 8
	// StageLeased: someone works on it.
	StageLeased Stage = 9
	// StageDead: failed for good.
	StageDead Stage = 10
	// StageParked: its topic is paused.
	StageParked Stage = 11
)

var stageNames = [...]string{
	"none", "seen", "idle", "scheduled", "deferred", "arrived", "queued",
	"ready", "suspect", "leased", "dead", "parked",
}

func (s Stage) String() string { return nameOf(stageNames[:], int(s), "stage") }

// State gives the state that the stage belongs to.
func (s Stage) State() State {
	switch s {
	case StageNone:
		return StateNone
	case StageSeen:
		return StateSeen
	case StageDead:
		return StateDead
	default:
		return StateProcessing
	}
}

// Waiting reports whether a message of this stage is processing without a lease.
func (s Stage) Waiting() bool { return s.State() == StateProcessing && s != StageLeased }

// An Outcome says what receiving a message did.
type Outcome uint8

// The outcomes of receiving a message. Each of them is to be acknowledged.
const (
	// Accepted: the message is new and will be handled.
	Accepted Outcome = iota + 1
	// Duplicate: it was received before, with the same content, or is done.
	Duplicate
	// Replaced: it was received before; the new content takes the old one's place.
	Replaced
	// Conflict: it was received before; the old content was kept, by option.
	Conflict
	// Dead: it was received before and is dead; its content was replaced. Or it is
	// malformed, and dead from the start.
	Dead
)

var outcomeNames = [...]string{"none", "accepted", "duplicate", "replaced", "conflict", "dead"}

func (o Outcome) String() string { return nameOf(outcomeNames[:], int(o), "outcome") }

func nameOf(names []string, i int, kind string) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", kind, i)
}

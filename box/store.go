// Package box is the engine below inboxes and outboxes: a durable, deduplicated
// queue of messages with leases. It defines what a store must do, and decides in
// one place how a message moves from state to state, so that every store moves
// it alike.
package box

import (
	"context"
	"errors"
	"time"

	"github.com/postroom/postroom"
)

// A Store keeps the messages of one table set, for any number of consumers. It
// is safe for concurrent use, also by several processes where the database is.
//
// Slices of results run parallel to the slices of requests. An error of the call
// means that none of the requests took effect, except postroom.ErrUnknown, where
// that is not known.
type Store interface {
	// Put takes messages in, each by its mode. With a tx it does so inside the
	// caller's transaction, which it never commits or rolls back; with nil it
	// commits before it returns. The same key twice in one call gives the
	// results of two calls made one after the other. It keeps neither the slice
	// nor what the messages in it point to: both are used again.
	Put(ctx context.Context, tx postroom.Tx, puts []Put) ([]PutResult, error)

	// Claim leases up to the requested number of ready messages, after it has
	// made ready what fell due and filled the lanes of groups. It may pass over,
	// for some seconds, what others hold just then or have committed late.
	Claim(ctx context.Context, req ClaimRequest) ([]*postroom.Message, error)

	// Settle ends leases. Those that are not current are left alone, and their
	// results say so. With a tx, it waits for locked rows and the settling
	// commits with the transaction; with nil it skips them (Settled.Locked).
	Settle(ctx context.Context, tx postroom.Tx, settlements []Settlement) ([]Settled, error)

	// Extend lets current leases end d from now instead.
	Extend(ctx context.Context, leases []postroom.Lease, d time.Duration) ([]Extension, error)

	// Move changes messages without a lease, as operators do and as the Mark
	// calls do. Each move succeeds or fails by itself, by its result's error.
	Move(ctx context.Context, moves []Move) ([]MoveResult, error)

	// Get gives the whole record of a message, or postroom.ErrNotFound.
	Get(ctx context.Context, key postroom.Key) (*Record, error)

	// Begin starts a transaction in which user code and Settle run together.
	Begin(ctx context.Context) (Transaction, error)

	// Close gives back what the store itself opened; never the caller's pool.
	Close() error
}

// Errors between a store and the engine.
var (
	// ErrHeld is the result of a Put that was to be diverted: a transaction of
	// somebody's holds the message.
	ErrHeld = errors.New("box: message is held by a transaction")
	// ErrRefused: the database does not like what it was given; the rest of the
	// batch may be fine.
	ErrRefused = errors.New("box: refused by the database")
)

// A Transaction was begun by a store.
type Transaction interface {
	postroom.Tx
	// Commit gives postroom.ErrUnknown when the answer to the commit was lost.
	Commit(ctx context.Context) error
	// Rollback after Commit does nothing.
	Rollback(ctx context.Context) error
}

// Abilities that a store may have besides. Each of ours has them all.
type (
	// A Sweeper does the chores that keep a box healthy.
	Sweeper interface {
		// Reap ends the leases that have expired, up to req.Limit.
		Reap(ctx context.Context, req ReapRequest) ([]Reaped, error)
		// Cleanup removes one batch of what is past its retention.
		Cleanup(ctx context.Context, req CleanupRequest) (CleanupResult, error)
	}

	// A Lister shows messages to operators.
	Lister interface {
		// List gives messages in ascending order of Seq.
		List(ctx context.Context, f Filter) ([]*Record, error)
		// Audit gives the newest operator actions first.
		Audit(ctx context.Context, f AuditFilter) ([]AuditEntry, error)
	}

	// A Counter keeps running totals and gives an overview without reading history.
	Counter interface {
		// Count adds to the totals.
		Count(ctx context.Context, counts []Count) error
		// Stats gives the overview of one consumer, or of all when it is empty.
		Stats(ctx context.Context, consumer string) (*Stats, error)
	}

	// A Pauser keeps the topics that no worker may handle.
	Pauser interface {
		// Pause and Resume are idempotent. Resume makes parked messages ready.
		Pause(ctx context.Context, consumer, topic, actor, reason string) error
		Resume(ctx context.Context, consumer, topic, actor string) error
		Paused(ctx context.Context, consumer string) ([]string, error)
	}

	// An Outboxer has a second table set beside its own, for what leaves. It is in
	// the same database, so that one transaction reaches both.
	Outboxer interface{ Outbox() (Store, error) }

	// A Migrator brings the schema up to date.
	Migrator interface {
		// Migrate is idempotent and safe when several processes start at once.
		Migrate(ctx context.Context) error
	}

	// A Pool says how many connections the store can use at once, so that a
	// worker can refuse a configuration that would starve itself. 0: no limit.
	Pool interface{ MaxConns() int }

	// A Waker lets processes tell each other that there may be something to
	// claim. Its hints may be lost: whoever waits for them polls as well.
	Waker interface {
		// Wake tells all that listen.
		Wake(ctx context.Context, consumer string) error
		// Listen calls hint for each Wake, until ctx is done. It gives an error, and
		// that at once, only where there can be no hints.
		Listen(ctx context.Context, consumer string, hint func()) error
	}

	// An Exchanger settles and claims together.
	Exchanger interface {
		// Exchanges reports whether that costs less than one after the other.
		Exchanges() bool
		// Exchange is Settle and then Claim, with one commit. An error means that
		// neither took effect, except postroom.ErrUnknown.
		Exchange(ctx context.Context, settlements []Settlement, req ClaimRequest) ([]Settled, []*postroom.Message, error)
	}

	// A Serial store has one writer at a time. While a transaction of a process
	// writes, nobody else can claim or reap: its leases need no renewal then, and a
	// second flush would only wait.
	Serial interface{ OneWriter() bool }

	// A Namer gives the name by which logs and metrics call the store.
	Namer interface{ Name() string }
)

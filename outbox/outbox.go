// Package outbox sends messages if and only if the transaction that they belong
// to commits. Add keeps them in the caller's transaction; a Relay sends what was
// committed, at least once, in order within a group.
package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// An Outbox keeps the messages of a program until they are sent. It is safe for
// concurrent use.
type Outbox struct {
	box  *box.Box
	opts Options
}

// Consumer is the name under which a store keeps what leaves.
const Consumer = "outbox"

// How long a message is kept after it was sent, besides a duration.
const (
	// Forever is a retention without an end.
	Forever time.Duration = -1
	// DeleteSent forgets a message with its confirmation. It can't be sent again,
	// and its ID is new when it is added again.
	DeleteSent time.Duration = -2
)

// DefaultRetention is how long a message is kept after it was sent.
const DefaultRetention = 30 * 24 * time.Hour

// Options of an Outbox. The zero value consists entirely of defaults.
type Options struct {
	// Source is that of messages that name none. Default: the name of the program.
	Source string
	// MaxPayload is the highest number of bytes of a payload, at most 64 MiB.
	// Default 1 MiB.
	MaxPayload int
	// MaxAttempts is after how many failures to send a message is Dead. Default:
	// never; it is tried again until it is sent, or an operator discards it.
	MaxAttempts int
	// SkipDead lets a group go on after a message of it that is Dead. Default:
	// the group waits, so that its order is kept, until an operator requeues or
	// discards the message.
	SkipDead bool
	// Retention is how long a message is kept after it was sent, for a Rewind.
	// Default 30 days; Forever; DeleteSent.
	Retention time.Duration
	// CleanupEvery is the interval of RunCleanup. Default 1 hour.
	CleanupEvery time.Duration
	// Overdue is how long a message may wait to be sent before a relay tells, by a
	// WARN, the total "overdue" and OnOverdue: once per message and Run. What is
	// still overdue after a restart is told again, and so by each of several
	// relays; Stats.Overdue counts each such message once, whatever runs.
	// Default 15 minutes.
	Overdue time.Duration
	// OnOverdue is called for each message that is overdue. Default: nobody is
	// called.
	OnOverdue func(ctx context.Context, r *Record)
	// OnDead is called once for each message that became Dead, after that was
	// committed, by whichever process noticed. Default: nobody is told.
	OnDead func(ctx context.Context, e postroom.DiedEvent)
	// Observer is told what happens, for metrics and traces. Default: nobody.
	Observer *postroom.Observer
	// Logger receives events. Default: slog.Default.
	Logger *slog.Logger
	// LogMessages logs a line per message at INFO. Default: at DEBUG, besides
	// one INFO line per batch with counts.
	LogMessages bool
}

// New gives the outbox of a store: its second table set, where it has one, else
// the store itself. Close it when you are done.
func New(store box.Store, opts Options) (*Outbox, error) {
	err := errors.Join(
		box.Default("MaxAttempts", &opts.MaxAttempts, 0),
		box.Default("CleanupEvery", &opts.CleanupEvery, time.Hour),
		box.Default("Overdue", &opts.Overdue, 15*time.Minute),
	)
	if opts.Retention < DeleteSent {
		err = errors.Join(err, argument("Retention", "is %s, allowed are a positive one, Forever and DeleteSent", opts.Retention))
	}
	if err != nil {
		return nil, err
	}
	opts.Source = cmp.Or(opts.Source, filepath.Base(os.Args[0]))
	opts.Retention = cmp.Or(opts.Retention, DefaultRetention)
	if two, ok := store.(box.Outboxer); ok {
		if store, err = two.Outbox(); err != nil {
			return nil, fmt.Errorf("open outbox: %w", err)
		}
	}
	b, err := box.New(store, Consumer, box.Options{
		Logger:      opts.Logger,
		LogMessages: opts.LogMessages,
		Observer:    opts.Observer,
		OnDead:      opts.OnDead,
		MaxPayload:  opts.MaxPayload,
		KeepContent: true,
		HoldGroup:   !opts.SkipDead,
		NeverDead:   opts.MaxAttempts == 0,
	})
	if err != nil {
		return nil, err
	}
	probe := postroom.Key{Consumer: Consumer, Source: opts.Source, ID: "x"}
	if err := probe.Validate(); err != nil {
		return nil, err
	}
	return &Outbox{box: b, opts: opts}, nil
}

func argument(name, reason string, args ...any) error {
	return &postroom.ArgumentError{Argument: name, Reason: fmt.Sprintf(reason, args...)}
}

// Box gives the engine below, for packages that build on it.
func (o *Outbox) Box() *box.Box { return o.box }

// Wake hints to the relays of this process that something was committed, so that
// they need not wait for their next poll. Inside a handler of an inbox Add does
// it by itself.
func (o *Outbox) Wake() { o.box.Wake() }

// Close writes the totals that are still in memory. The store stays open.
func (o *Outbox) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return o.box.Close(ctx)
}

const closeTimeout = 5 * time.Second

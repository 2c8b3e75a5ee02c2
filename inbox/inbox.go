package inbox

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// An Inbox admits each message of one consumer once. It is safe for concurrent
// use.
type Inbox struct {
	box  *box.Box
	opts Options
}

// OnDuplicate says what becomes of a message that is received again with
// another content before it is done.
type OnDuplicate uint8

// What becomes of a second content.
const (
	// Replace: the newest content is the one that is handled.
	Replace OnDuplicate = iota
	// Keep: the first content stays, and the outcome is Conflict.
	Keep
)

// Forever is a retention without an end. In the options 0 means the default;
// the command line, where each value is written out, spells it 0.
const Forever time.Duration = -1

// DefaultRetention is how long payloads and records are kept after a message
// was done.
const DefaultRetention = 30 * 24 * time.Hour

// Options of an Inbox. The zero value consists entirely of defaults.
type Options struct {
	// Disabled lets Once, Guard and Idempotent run their handlers without
	// asking whether the message was seen before, for tests and emergencies.
	// Default: they ask. (Elsewhere this is known as Enabled: false.)
	Disabled bool
	// OnDuplicate is Replace or Keep. Default Replace.
	OnDuplicate OnDuplicate
	// HashPayload computes the SHA-256 of payloads that come without a hash, so
	// that one ID with two contents is noticed. Default: no.
	HashPayload bool
	// MaxPayload is the highest number of bytes of a payload, at most 64 MiB.
	// Default 1 MiB.
	MaxPayload int
	// HoldGroup lets a group wait for its dead head until an operator acts.
	// Default: the next message of the group goes.
	HoldGroup bool
	// PayloadRetention is how long payload and headers of a done message are
	// kept; then only the record of it remains. Default 30 days; Forever has
	// no end.
	PayloadRetention time.Duration
	// RecordRetention is how long a done message is remembered, and so how late
	// a duplicate may come and still be recognised. Default 30 days; Forever has
	// no end.
	RecordRetention time.Duration
	// CleanupEvery is the interval of RunCleanup. Default 1 hour.
	CleanupEvery time.Duration
	// OnDead is called once for each message that became Dead, after that was
	// committed, by whichever process noticed. It is called on the way of other
	// messages, which wait for it: leave long work to someone else. A crash at
	// that moment can lose the call, never the message. Default: nobody is told.
	OnDead func(ctx context.Context, e postroom.DiedEvent)
	// Observer is told what happens, for metrics and traces. Default: nobody.
	Observer *postroom.Observer
	// Logger receives events. Default: slog.Default.
	Logger *slog.Logger
	// LogMessages logs a line per message at INFO. Default: at DEBUG, besides
	// one INFO line per batch with counts.
	LogMessages bool
}

// New gives the inbox of a consumer: 1 to 64 bytes of a-z, 0-9, dot, underscore
// and hyphen. Close it when you are done.
func New(store box.Store, consumer string, opts Options) (*Inbox, error) {
	if opts.OnDuplicate > Keep {
		return nil, &postroom.ArgumentError{Argument: "OnDuplicate", Reason: fmt.Sprintf("is %d, allowed are Replace and Keep", opts.OnDuplicate)}
	}
	for _, d := range []*time.Duration{&opts.PayloadRetention, &opts.RecordRetention} {
		if *d == 0 {
			*d = DefaultRetention
		}
	}
	switch {
	case opts.CleanupEvery < 0:
		return nil, &postroom.ArgumentError{Argument: "CleanupEvery", Reason: fmt.Sprintf("is %s, it must not be negative", opts.CleanupEvery)}
	case opts.CleanupEvery == 0:
		opts.CleanupEvery = time.Hour
	}
	b, err := box.New(store, consumer, box.Options{
		Logger:      opts.Logger,
		LogMessages: opts.LogMessages,
		Observer:    opts.Observer,
		OnDead:      opts.OnDead,
		MaxPayload:  opts.MaxPayload,
		HashPayload: opts.HashPayload,
		KeepContent: opts.OnDuplicate == Keep,
		HoldGroup:   opts.HoldGroup,
	})
	if err != nil {
		return nil, err
	}
	return &Inbox{box: b, opts: opts}, nil
}

// Consumer gives the name that the inbox was made with.
func (in *Inbox) Consumer() string { return in.box.Consumer() }

// Box gives the engine below, for packages that build on it.
func (in *Inbox) Box() *box.Box { return in.box }

// Close writes the totals that are still in memory. The store stays open.
func (in *Inbox) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
	defer cancel()
	return in.box.Close(ctx)
}

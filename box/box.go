package box

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/postroom/postroom"
)

// A Box is the engine for one consumer in one store: it checks and normalises
// what callers pass, calls the store, and tells logs, observers and running
// totals what happened. It is safe for concurrent use.
type Box struct {
	store    Store
	consumer string
	opts     Options
	scope    postroom.Scope
	log      *slog.Logger
	observe  postroom.Observer
	tally    *tally
	intake   *gather
	wakers   wakers
	distant  distant
	running  runs
	warned   sync.Map // what was warned of once
}

// Options of a Box. The zero value consists entirely of defaults.
type Options struct {
	// Logger receives events. Default: slog.Default.
	Logger *slog.Logger
	// LogMessages logs a line per message at INFO. Default: at DEBUG, and one
	// INFO line per batch with counts.
	LogMessages bool
	// Observer is told what happens. Default: nobody.
	Observer *postroom.Observer
	// OnDead is called once for each message that became Dead, after that was
	// committed. Default: nobody.
	OnDead func(ctx context.Context, e postroom.DiedEvent)
	// MaxPayload is the highest number of bytes of a payload, at most
	// postroom.MaxPayloadLimit. Default postroom.MaxPayload, 1 MiB.
	MaxPayload int
	// HashPayload computes the SHA-256 of payloads that come without a hash.
	// Default: no.
	HashPayload bool
	// KeepContent leaves the content of a known message as it is when it is
	// received again with another. Default: the new content replaces the old.
	KeepContent bool
	// HoldGroup lets a group wait for its dead head. Default: the next one goes.
	HoldGroup bool
	// NeverDead keeps messages whose process died repeatedly as suspects.
	// Default: they are Dead after MaxLost lost leases.
	NeverDead bool
}

// New gives the box of a consumer. Close it to write the last totals.
func New(store Store, consumer string, opts Options) (*Box, error) {
	if store == nil {
		return nil, &postroom.ArgumentError{Argument: "store", Reason: "is nil"}
	}
	if err := postroom.ValidateConsumer(consumer); err != nil {
		return nil, err
	}
	if opts.MaxPayload < 0 || opts.MaxPayload > postroom.MaxPayloadLimit {
		return nil, &postroom.ArgumentError{
			Argument: "MaxPayload",
			Reason:   fmt.Sprintf("is %d, allowed are 1 to %d, or 0 for %d", opts.MaxPayload, postroom.MaxPayloadLimit, postroom.MaxPayload),
		}
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	b := &Box{store: store, consumer: consumer, opts: opts}
	b.scope = postroom.Scope{Store: nameOf(store), Consumer: consumer}
	b.log = opts.Logger.With("consumer", consumer, "store", b.scope.Store)
	b.observe = filled(opts.Observer)
	limit := flights
	if serial, ok := store.(Serial); ok && serial.OneWriter() {
		limit = 1
	}
	b.intake = newGather(limit, b.flush)
	if c, ok := store.(Counter); ok {
		b.tally = newTally(c, b.log)
	}
	return b, nil
}

// Store gives the store that the box was made with.
func (b *Box) Store() Store { return b.store }

// Consumer gives the consumer's name.
func (b *Box) Consumer() string { return b.consumer }

// Scope says whose events the box reports.
func (b *Box) Scope() postroom.Scope { return b.scope }

// Logger carries the attributes consumer and store.
func (b *Box) Logger() *slog.Logger { return b.log }

// Observer has each function set.
func (b *Box) Observer() *postroom.Observer { return &b.observe }

// Key names a message of this box.
func (b *Box) Key(source, id string) postroom.Key {
	return postroom.Key{Consumer: b.consumer, Source: source, ID: id}
}

// Close waits for messages that are being taken in, and writes the running
// totals that are still in memory. The store stays open: it belongs to the
// caller.
func (b *Box) Close(ctx context.Context) error {
	err := b.intake.close(ctx)
	if b.tally == nil {
		return err
	}
	return errors.Join(err, b.tally.close(ctx))
}

func nameOf(s Store) string {
	if n, ok := s.(Namer); ok {
		return n.Name()
	}
	return fmt.Sprintf("%T", s)
}

// ability gives an optional ability of the store, or an error that says what
// the store can't do.
func ability[A any](b *Box, what string) (A, error) {
	a, ok := b.store.(A)
	if !ok {
		return a, fmt.Errorf("store %s can't %s: %w", b.scope.Store, what, errors.ErrUnsupported)
	}
	return a, nil
}

// filled gives an observer on which each function can be called.
func filled(o *postroom.Observer) postroom.Observer {
	var f postroom.Observer
	if o != nil {
		f = *o
	}
	ignore(&f.Received)
	ignore(&f.Claimed)
	ignore(&f.Finished)
	ignore(&f.Settled)
	ignore(&f.Lost)
	ignore(&f.Died)
	ignore(&f.Unhandled)
	ignore(&f.CleanedUp)
	if f.Started == nil {
		f.Started = func(ctx context.Context, _ postroom.StartedEvent) context.Context { return ctx }
	}
	return f
}

func ignore[E any](f *func(context.Context, E)) {
	if *f == nil {
		*f = func(context.Context, E) {}
	}
}

package main

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/postroom/postroom/bus"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/sqlite"
)

// A module has tables of its own, an inbox, an outbox and handlers. Modules know
// each other's events, and nothing else of each other.
type module struct {
	name  string
	store *sqlstore.Store
	in    *inbox.Inbox
	out   *outbox.Outbox
	mux   *inbox.Mux
}

// How the processes of this program share the file, and how soon the work of one
// that was killed goes on in the next.
const (
	lease = time.Second
	poll  = 20 * time.Millisecond
)

func newModule(db *sql.DB, name string) (*module, error) {
	store, err := sqlstore.Open(db, sqlite.Dialect, sqlstore.Options{Prefix: name})
	if err != nil {
		return nil, err
	}
	m := &module{name: name, store: store, mux: inbox.NewMux()}
	if m.in, err = inbox.New(store, name, inbox.Options{}); err != nil {
		return nil, err
	}
	m.out, err = outbox.New(store, outbox.Options{Source: name})
	return m, err
}

// migrate creates the tables of Postroom and of the module itself.
func (m *module) migrate(ctx context.Context, db *sql.DB, tables string) error {
	if err := m.store.Migrate(ctx); err != nil {
		return err
	}
	_, err := db.ExecContext(ctx, tables)
	return err
}

// run handles what comes in and relays what goes out until ctx is done.
func (m *module) run(ctx context.Context, b *bus.Bus) error {
	failed := make(chan error, 2)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		failed <- inbox.NewWorker(m.in, m.mux, inbox.WorkerOptions{Lease: lease, Poll: poll, MaxPoll: poll}).Run(ctx)
		stop()
	}()
	go func() {
		failed <- outbox.NewRelay(m.out, outbox.To(b), outbox.RelayOptions{Lease: lease, Poll: poll}).Run(ctx)
		stop()
	}()
	for range 2 {
		if err := <-failed; err != nil {
			return fmt.Errorf("module %s: %w", m.name, err)
		}
	}
	return nil
}

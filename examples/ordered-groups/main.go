// Command ordered-groups gives messages a group: those of one account run one
// at a time and in order, also while one of them is tried again; accounts don't
// wait for each other.
//
// It exits with 1 when an account saw two of its messages at once, or in another
// order than they came.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/sqlite"
	_ "modernc.org/sqlite" // driver "sqlite"
)

func main() {
	slog.SetLogLoggerLevel(slog.LevelError + 1) // one handler fails on purpose
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

var accounts = []string{"ann", "bob", "eve"}

// each is how many messages an account gets.
const each = 5

// patience bounds the program where something stands still.
const patience = 30 * time.Second

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "ordered-groups")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "accounts.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	store, err := sqlstore.Open(db, sqlite.Dialect, sqlstore.Options{})
	if err != nil {
		return err
	}
	if err := store.Migrate(ctx); err != nil {
		return err
	}
	in, err := inbox.New(store, "accounts", inbox.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()

	for n := 1; n <= each; n++ {
		for _, account := range accounts {
			if _, err := in.Receive(ctx, postroom.Message{
				Source: "bank", ID: fmt.Sprintf("%s-%d", account, n), Topic: "account.changed",
				Group: account, Payload: fmt.Append(nil, n),
			}); err != nil {
				return err
			}
		}
	}

	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	j := newJournal(len(accounts)*each, stop)
	mux := inbox.NewMux()
	// An error of a registration comes back from Run.
	_ = mux.HandleWith("account.changed", postroom.HandlerFunc(j.handle), inbox.HandlerOptions{MaxAttempts: 1000})
	worker := inbox.NewWorker(in, mux, inbox.WorkerOptions{Concurrency: 8})
	if err := worker.Run(ctx); err != nil {
		return err
	}
	return j.audit()
}

var errNotYet = errors.New("not yet")

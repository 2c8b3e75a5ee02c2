// Command once-in-your-transaction consumes a feed by its own means and keeps
// its own transactions: OnceTx marks a message in the transaction that does the
// work, so that both commit or neither.
//
// The feed repeats messages, also at the same time, and every second one
// fails at first, after it wrote. It exits with 1 unless each transfer was booked once.
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
	"sync"
	"sync/atomic"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/sqlite"
	_ "modernc.org/sqlite" // driver "sqlite"
)

const (
	transfers = 20
	// copies of each transfer arrive, all at about the same time.
	copies = 3
)

func main() {
	slog.SetLogLoggerLevel(slog.LevelWarn)
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "once-in-your-transaction")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// Transactions that will write begin as writers: one that reads first and
	// then finds another writer can't wait for it, by the rules of SQLite.
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "bank.db")+"?_pragma=busy_timeout(5000)&_txlock=immediate")
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
	if _, err := db.ExecContext(ctx, `CREATE TABLE booking (cents INTEGER)`); err != nil {
		return err
	}
	in, err := inbox.New(store, "ledger", inbox.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()

	b := &bank{db: db, in: in}
	if err := b.consume(ctx); err != nil {
		return err
	}
	return b.audit(ctx)
}

type bank struct {
	db *sql.DB
	in *inbox.Inbox

	booked, skipped, undone atomic.Int64
	failed                  sync.Map // the IDs of which a run has got that far
}

// consume plays a broker: it delivers each transfer several times, and again for
// as long as it is not acknowledged.
func (b *bank) consume(ctx context.Context) error {
	errs := make([]error, copies)
	var feeds sync.WaitGroup
	for n := range copies {
		feeds.Go(func() {
			for i := 1; i <= transfers && errs[n] == nil; i++ {
				errs[n] = b.deliver(ctx, postroom.Message{Source: "bank", ID: fmt.Sprintf("transfer-%02d", i)}, 100*i)
			}
		})
	}
	feeds.Wait()
	return errors.Join(errs...)
}

// tries is how often a broker delivers before it gives up.
const tries = 10

func (b *bank) deliver(ctx context.Context, m postroom.Message, cents int) error {
	var err error
	for range tries {
		if err = b.handle(ctx, m, cents); err == nil {
			return nil
		}
	}
	return fmt.Errorf("deliver %s: %w", m.ID, err)
}

var errUnlucky = errors.New("the program failed after it wrote")

// handle is the pattern. The delivery is acknowledged when it gives nil.
func (b *bank) handle(ctx context.Context, m postroom.Message, cents int) error {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit this does nothing
	first, err := b.in.OnceTx(ctx, sqlstore.Tx(tx), m)
	if err != nil {
		return err
	}
	if !first {
		b.skipped.Add(1)
		return nil
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO booking VALUES (?)`, cents); err != nil {
		return err
	}
	if _, failed := b.failed.LoadOrStore(m.ID, true); !failed && cents%200 == 0 {
		b.undone.Add(1)
		return errUnlucky // the mark is rolled back with the booking
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	b.booked.Add(1)
	return nil
}

func (b *bank) audit(ctx context.Context) error {
	fmt.Printf("%d transfers, %d copies of each\n", transfers, copies)
	fmt.Printf("booked %d, skipped as duplicates %d, rolled back and tried again %d\n", b.booked.Load(), b.skipped.Load(), b.undone.Load())
	var rows, cents int
	if err := b.db.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(cents), 0) FROM booking`).Scan(&rows, &cents); err != nil {
		return err
	}
	want := 100 * transfers * (transfers + 1) / 2
	fmt.Printf("the ledger has %d bookings over %d cents\n", rows, cents)
	if rows != transfers || cents != want {
		return fmt.Errorf("want %d bookings over %d cents: a transfer was lost or booked twice", transfers, want)
	}
	return nil
}

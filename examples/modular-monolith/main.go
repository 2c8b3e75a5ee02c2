// Command modular-monolith is a shop of three modules, orders, payments and
// shipping, each with tables of its own in one SQLite file. They speak by events:
// the outbox of one is relayed over the in-process bus into the inbox of the next.
//
// The shop runs in child processes that are killed in the midst of their work,
// again and again. At the end the tables must prove that every order was charged
// once and shipped once; the program exits with 1 when they don't.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // driver "sqlite"
)

const (
	// orders are placed by the children, each of them twice.
	orders = 60
	// kills is how many children die before one may live.
	kills = 5
	// patience bounds the program where something stands still.
	patience = time.Minute
)

// childVariable makes this program the shop itself, on the file that it names.
const childVariable = "MODULAR_MONOLITH_FILE"

func main() {
	slog.SetLogLoggerLevel(slog.LevelError + 1) // leases are lost on purpose
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	run := supervise
	if os.Getenv(childVariable) != "" {
		run = serve
	}
	err := run(ctx)
	cancel()
	if err != nil {
		log.Fatal(err)
	}
}

func open(file string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)&_pragma=synchronous(NORMAL)")
}

// serve is the shop: all modules in one process, until it is killed.
func serve(ctx context.Context) error {
	db, err := open(os.Getenv(childVariable))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	s, err := newShop(db)
	if err != nil {
		return err
	}
	failed := make(chan error, 4)
	for _, m := range s.modules() {
		go func() { failed <- m.run(ctx, s.bus) }()
	}
	go func() { failed <- s.placeAll(ctx, db) }()
	for range 4 {
		if err := <-failed; err != nil {
			return err
		}
	}
	return nil
}

// placeAll places each order twice, as customers do who see no answer. A child
// begins anew with the first: what an earlier one took stays as it is.
func (s *shop) placeAll(ctx context.Context, db *sql.DB) error {
	for i := range orders {
		for range 2 {
			if err := s.place(ctx, db, order{Order: fmt.Sprintf("order-%02d", i), Cents: 100 + i}); err != nil {
				return err
			}
		}
	}
	return nil
}

// supervise starts the shop and kills it, then lets one child finish, and proves.
func supervise(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "modular-monolith")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "shop.db")
	db, err := open(file)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	s, err := newShop(db)
	if err != nil {
		return err
	}
	if err := s.migrate(ctx, db); err != nil {
		return err
	}
	fmt.Printf("%d orders, each placed twice, in a shop that is killed %d times\n", orders, kills)
	for n := 1; n <= kills+1; n++ {
		// Each child gets a little further than the one before; the last one
		// to the end.
		if err := live(ctx, db, file, orders*n/(kills+1)); err != nil {
			return err
		}
	}
	return prove(ctx, db)
}

// live runs a child until that many parcels are on their way, and kills it.
func live(ctx context.Context, db *sql.DB, file string, parcels int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.CommandContext(ctx, self)
	child.Env = append(os.Environ(), childVariable+"="+file)
	child.Stderr = os.Stderr
	if err := child.Start(); err != nil {
		return err
	}
	err = until(ctx, func() (bool, error) {
		n, err := count(ctx, db, `SELECT count(*) FROM parcels`)
		if err != nil || n < parcels {
			return false, err
		}
		if parcels < orders {
			return true, nil
		}
		n, err = count(ctx, db, `SELECT (SELECT count(*) FROM orders_outbox_work) + (SELECT count(*) FROM payments_work)
			+ (SELECT count(*) FROM payments_outbox_work) + (SELECT count(*) FROM shipping_work)`)
		return n == 0, err
	})
	_ = child.Process.Kill()
	var killed *exec.ExitError
	if waited := child.Wait(); err == nil && !errors.As(waited, &killed) {
		err = fmt.Errorf("the shop ended by itself: %w", waited)
	}
	return err
}

func until(ctx context.Context, ok func() (bool, error)) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if done, err := ok(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the shop stands still: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

func count(ctx context.Context, db *sql.DB, query string) (n int, err error) {
	err = db.QueryRowContext(ctx, query).Scan(&n)
	return n, err
}

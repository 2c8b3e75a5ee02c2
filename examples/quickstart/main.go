// Command quickstart is the program of the README: a message comes twice, and
// is handled once. Run it again, and it still was handled once.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/sqlite"
	_ "modernc.org/sqlite" // any driver will do; this one needs no C compiler
)

func main() {
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file:quickstart.db?_pragma=busy_timeout(5000)&_txlock=immediate")
	check(err)
	store, err := sqlstore.Open(db, sqlite.Dialect, sqlstore.Options{})
	check(err)
	check(store.Migrate(ctx))
	in, err := inbox.New(store, "shop", inbox.Options{})
	check(err)
	_, err = db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS payment (id TEXT, body TEXT)`)
	check(err)

	for range 2 { // the sender repeats itself; acknowledge it when err is nil
		res, err := in.Receive(ctx, postroom.Message{
			Source: "bank", ID: "pay_1", Topic: "payment.received", Payload: []byte(`{"cents":4200}`),
		})
		check(err)
		fmt.Println("received:", res.Outcome)
	}

	mux := inbox.NewMux()
	check(mux.Handle("payment.*", sqlstore.Handler(func(ctx context.Context, tx *sql.Tx, m *postroom.Message) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO payment VALUES (?, ?)`, m.ID, string(m.Payload))
		return err // nil: the row and the message's being done commit together
	})))
	worker := inbox.NewWorker(in, mux, inbox.WorkerOptions{})
	check(worker.RunUntilIdle(ctx)) // a service calls Run(ctx) instead

	var payments int
	check(db.QueryRowContext(ctx, `SELECT count(*) FROM payment`).Scan(&payments))
	fmt.Println("payments:", payments)
	if payments != 1 {
		log.Fatal("want 1 payment")
	}
	check(in.Close())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Command webhook-quickstart takes webhooks in: verify the signature, check,
// enqueue, answer 2xx once the event is committed, and handle it later. A
// provider that repeats itself, and a stranger, are played by the program itself.
//
// It exits with 1 unless each genuine event took effect once.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"log/slog"
	"net/http/httptest"
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
	slog.SetLogLoggerLevel(slog.LevelWarn)
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "webhook-quickstart")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "shop.db")+"?_pragma=busy_timeout(5000)&_txlock=immediate")
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
	// The table has no unique key: nothing but the inbox keeps charges apart.
	if _, err := db.ExecContext(ctx, `CREATE TABLE charge (event TEXT, cents INTEGER)`); err != nil {
		return err
	}
	in, err := inbox.New(store, "shop", inbox.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()

	secret := []byte("whsec_example")
	server := httptest.NewServer(&receiver{in: in, secret: secret, now: time.Now})
	defer server.Close()
	p := provider{url: server.URL, secret: secret}

	fmt.Println("the provider sends each event twice, a stranger tries too:")
	genuine := []event{{"evt_1", "charge.succeeded", 1000}, {"evt_2", "charge.succeeded", 250}, {"evt_3", "customer.created", 0}}
	for _, e := range genuine {
		for range 2 {
			if err := p.send(ctx, e, time.Now()); err != nil {
				return err
			}
		}
	}
	stranger := provider{url: server.URL, secret: []byte("guess")}
	if err := stranger.send(ctx, event{"evt_9", "charge.succeeded", 99_999}, time.Now()); err != nil {
		return err
	}
	if err := p.send(ctx, genuine[0], time.Now().Add(-time.Hour)); err != nil {
		return err
	}

	fmt.Println("the worker handles what is in the inbox")
	if err := inbox.NewWorker(in, handlers(), inbox.WorkerOptions{}).RunUntilIdle(ctx); err != nil {
		return err
	}
	fmt.Println("the provider missed an answer:")
	if err := p.send(ctx, genuine[0], time.Now()); err != nil {
		return err
	}
	return audit(ctx, db)
}

// handlers are the rest of a program like this one; only they know what an event
// means.
func handlers() *inbox.Mux {
	mux := inbox.NewMux()
	// Errors of registrations come back from the worker's Run.
	_ = mux.Handle("stripe.charge.succeeded", sqlstore.Handler(func(ctx context.Context, tx *sql.Tx, m *postroom.Message) error {
		e, err := decode(m.Payload)
		if err != nil {
			return postroom.Permanent(err)
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO charge VALUES (?, ?)`, e.ID, e.Cents)
		return err
	}))
	_ = mux.HandleFunc("stripe.*", func(context.Context, *postroom.Message) error {
		return postroom.Discard("no interest in events of this type")
	})
	return mux
}

func audit(ctx context.Context, db *sql.DB) error {
	var charged string
	if err := db.QueryRowContext(ctx, `SELECT coalesce(group_concat(event || ' ' || cents, ', ' ORDER BY event), 'nothing') FROM charge`).Scan(&charged); err != nil {
		return err
	}
	fmt.Println("charged:", charged)
	if want := "evt_1 1000, evt_2 250"; charged != want {
		return fmt.Errorf("want %s: an event was lost, repeated or forged", want)
	}
	return nil
}

package stores_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/pgxstore"
	"github.com/postroom/postroom/tests/services"
)

// A message that one process receives wakes the worker of another, which polls
// so rarely that only the hint can have brought it.
func TestWake_reaches_the_workers_of_other_processes(t *testing.T) {
	dsn := services.FreshDatabase(t, services.Postgres(t))
	open := func(schema string) *inbox.Inbox {
		pool, err := pgxpool.New(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		store, err := pgxstore.Open(pool, pgxstore.Options{Schema: schema})
		if err == nil {
			err = store.Migrate(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		in, err := inbox.New(store, "orders", inbox.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = in.Close() })
		return in
	}
	here, there := open("a"), open("a")

	handled := make(chan string, 10)
	mux := inbox.NewMux()
	err := mux.Handle("t", postroom.HandlerFunc(func(_ context.Context, m *postroom.Message) error {
		handled <- m.ID
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() { stop(); running.Wait() })
	worker := inbox.NewWorker(there, mux, inbox.WorkerOptions{Poll: time.Hour, MaxPoll: time.Hour})
	running.Go(func() {
		if err := worker.Run(ctx); err != nil {
			t.Errorf("worker: %v", err)
		}
	})
	// The first may come before the worker listens, which then looks by itself.
	for _, id := range []string{"1", "2", "3"} {
		if _, err := here.Receive(t.Context(), postroom.Message{Source: "s", ID: id, Topic: "t", Payload: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-handled:
			if got != id {
				t.Errorf("handled %s, want %s", got, id)
			}
		case <-time.After(time.Minute):
			t.Fatalf("nobody handled %s within a minute", id)
		}
	}
}

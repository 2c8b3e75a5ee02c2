package stores_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/sqlite"
	"github.com/postroom/postroom/tests/stores"
)

// The first write of a store prepares its statements, for which it needs a
// connection. While a caller has the only one, others keep to their contexts.
func TestSQLite_nobody_waits_past_his_context_for_statements_to_be_prepared(t *testing.T) {
	db := stores.Connect(t, "sqlite", "file:"+filepath.Join(t.TempDir(), "box.db"))
	db.SetMaxOpenConns(1)
	store, err := sqlstore.Open(db, sqlite.Dialect, sqlstore.Options{})
	if err == nil {
		err = store.Migrate(t.Context())
	}
	if err == nil {
		store, err = sqlstore.Open(db, sqlite.Dialect, sqlstore.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	message := func(id string) []box.Put {
		return []box.Put{{Mode: box.Queue, Message: postroom.Message{Consumer: "c", Source: "s", ID: id, Topic: "t", Payload: []byte("x")}}}
	}
	var wg sync.WaitGroup
	before := db.Stats().WaitCount
	wg.Go(func() {
		if _, err := store.Put(t.Context(), nil, message("own")); err != nil {
			t.Error(err)
		}
	})
	for db.Stats().WaitCount == before { // until it waits for the connection
	}
	if _, err := store.Put(t.Context(), sqlstore.Tx(tx), message("caller's")); err != nil {
		t.Error(err)
	}
	read := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := store.Get(ctx, postroom.Key{Consumer: "c", Source: "s", ID: "own"})
		read <- err
	}()
	select {
	case err := <-read:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a read gave %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("a read outlasts its context")
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

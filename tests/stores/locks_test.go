package stores_test

import (
	"fmt"
	"testing"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/tests/services"
	"github.com/postroom/postroom/tests/stores"
)

// A bulk load in one transaction leaves the server's lock table to others.
func TestAnnouncedKeysAreBounded(t *testing.T) {
	open := stores.Postgres(t, "pgx", services.Postgres(t), sqlstore.Options{})
	tx, err := open.DB.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	puts := make([]box.Put, 1200)
	for i := range puts {
		puts[i] = box.Put{Mode: box.Queue, Message: postroom.Message{
			Consumer: "c", Source: "s", ID: fmt.Sprint(i), Topic: "t", Payload: []byte("x"),
		}}
	}
	results, err := open.Store.Put(t.Context(), sqlstore.Tx(tx), puts)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.Outcome != postroom.Accepted {
			t.Fatalf("message %d: %v", i, r.Outcome)
		}
	}
	var locks int
	err = tx.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()").Scan(&locks)
	if err != nil || locks != 1000 {
		t.Errorf("the transaction announced %d of 1200 keys: %v", locks, err)
	}
}

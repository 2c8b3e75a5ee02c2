package stores_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// Messages are stored as new until there was a duplicate, which loses nothing.
func TestReceive_hopes_for_new_messages_until_there_was_a_duplicate(t *testing.T) {
	seen := &traced{names: []string{"receive", "receive_new"}}
	_, store := seen.open(t)
	put := func(want string, ids ...int) {
		t.Helper()
		seen.all = nil
		var puts []box.Put
		for _, id := range ids {
			puts = append(puts, box.Put{Mode: box.Queue, Message: postroom.Message{
				Consumer: "c", Source: "s", ID: fmt.Sprint(id), Topic: "t", Payload: []byte("x"),
			}})
		}
		results, err := store.Put(t.Context(), nil, puts)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, r := range results {
			got += fmt.Sprint(r.Outcome, " ")
		}
		for _, d := range seen.all {
			got += strings.Fields(d.SQL)[1] + " "
		}
		if got != want {
			t.Errorf("%d: %s, want %s", ids, got, want)
		}
	}
	put("accepted accepted postroom:receive_new ", 1, 2)
	put("accepted duplicate accepted postroom:receive_new postroom:receive ", 3, 2, 4)
	put("accepted postroom:receive ", 5)
	put("duplicate duplicate duplicate duplicate duplicate postroom:receive ", 5, 4, 3, 2, 1)
}

// In the simple protocol values are part of the statement, which the server would
// log with the error.
func TestReceive_hopes_for_nothing_where_statements_carry_payloads(t *testing.T) {
	seen := &traced{names: []string{"receive", "receive_new"}, mode: pgx.QueryExecModeSimpleProtocol}
	_, store := seen.open(t)
	fill(t, store, 1)
	if len(seen.all) != 1 || !strings.HasPrefix(seen.all[0].SQL, "/* postroom:receive */") {
		t.Errorf("%d statements: %+v", len(seen.all), seen.all)
	}
}

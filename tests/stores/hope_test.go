package stores_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/pgxstore"
)

// Messages are stored as new until there was a duplicate, which loses nothing.
func TestReceive_hopes_for_new_messages_until_there_was_a_duplicate(t *testing.T) {
	seen := &traced{names: []string{"receive", "receive_new", "receive_new_plain"}}
	_, store := seen.open(t)
	headers := map[string]string{}
	put := func(want string, ids ...int) {
		t.Helper()
		seen.all = nil
		var puts []box.Put
		for _, id := range ids {
			puts = append(puts, box.Put{Mode: box.Queue, Message: postroom.Message{
				Consumer: "c", Source: "s", ID: fmt.Sprint(id), Topic: "t", Payload: []byte("x"), Headers: headers,
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
	put("accepted accepted postroom:receive_new_plain ", 1, 2)
	headers["h"] = "v"
	put("accepted duplicate accepted postroom:receive_new postroom:receive ", 3, 2, 4)
	put("accepted postroom:receive ", 5)
	put("duplicate duplicate duplicate duplicate duplicate postroom:receive ", 5, 4, 3, 2, 1)
}

// A key that sits in somebody's transaction may come again: each time it would be
// waited for.
func TestReceive_hopes_for_nothing_after_a_key_that_is_held(t *testing.T) {
	seen := &traced{names: []string{"receive", "receive_new_plain"}}
	pool, store := seen.open(t)
	put := func(tx postroom.Tx, id string) box.PutResult {
		t.Helper()
		results, err := store.Put(t.Context(), tx, []box.Put{{Mode: box.Queue, Divert: true, Message: postroom.Message{
			Consumer: "c", Source: "s", ID: id, Topic: "t", Payload: []byte("x"),
		}}})
		if err != nil {
			t.Fatal(err)
		}
		return results[0]
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	put(pgxstore.Tx(tx), "held")
	if got := put(nil, "held"); !errors.Is(got.Err, box.ErrHeld) {
		t.Errorf("%+v", got)
	}
	put(nil, "new")
	var ran []string
	for _, d := range seen.all {
		ran = append(ran, strings.Fields(d.SQL)[1])
	}
	if !slices.Equal(ran, []string{"postroom:receive_new_plain", "postroom:receive"}) {
		t.Errorf("%v", ran)
	}
}

// In the simple protocol values are part of the statement, which the server would
// log with the error.
func TestReceive_hopes_for_nothing_where_statements_carry_payloads(t *testing.T) {
	seen := &traced{names: []string{"receive", "receive_new", "receive_new_plain"}, mode: pgx.QueryExecModeSimpleProtocol}
	_, store := seen.open(t)
	fill(t, store, 1)
	if len(seen.all) != 1 || !strings.HasPrefix(seen.all[0].SQL, "/* postroom:receive */") {
		t.Errorf("%d statements: %+v", len(seen.all), seen.all)
	}
}

// What is stored does not depend on the statement that stores it.
func TestReceive_stores_new_messages_as_it_stores_others(t *testing.T) {
	seen := &traced{names: []string{"receive", "receive_new"}}
	_, store := seen.open(t)
	now := time.Now().UTC().Truncate(time.Second)
	put := func(ids ...string) {
		t.Helper()
		var puts []box.Put
		for i, id := range ids {
			puts = append(puts, box.Put{Mode: box.Queue, Message: postroom.Message{
				Consumer: "c", Source: "s", ID: id, Topic: fmt.Sprint("t", i), Payload: []byte{byte(i)}, Headers: map[string]string{"h": fmt.Sprint(i)},
				Hash: []byte{1, byte(i)}, HashAlg: "sha", CorrelationID: fmt.Sprint("cor", i), CausationID: fmt.Sprint("cau", i),
				DueAt: now.Add(time.Duration(i-1) * time.Hour), ExpiresAt: now.Add(24 * time.Hour), OccurredAt: now.Add(-time.Minute),
			}})
		}
		if _, err := store.Put(t.Context(), nil, puts); err != nil {
			t.Fatal(err)
		}
	}
	record := func(id string) box.Record {
		t.Helper()
		rec, err := store.Get(t.Context(), postroom.Key{Consumer: "c", Source: "s", ID: id})
		if err != nil {
			t.Fatal(err)
		}
		rec.Seq, rec.ID, rec.FirstSeen, rec.LastSeen = 0, "", time.Time{}, time.Time{}
		return *rec
	}
	put("z1", "b1", "m1")
	put("z1")
	put("z2", "b2", "m2")
	if len(seen.all) != 4 || !strings.Contains(seen.all[0].SQL, "receive_new") || strings.Contains(seen.all[3].SQL, "receive_new") {
		t.Fatalf("%d statements", len(seen.all))
	}
	for _, id := range []string{"z", "b", "m"} {
		if one, other := record(id+"1"), record(id+"2"); !reflect.DeepEqual(one, other) {
			t.Errorf("%+v\nby the statement for new messages, by the other one\n%+v", one, other)
		}
	}
	if got := record("m1"); got.Stage != postroom.StageScheduled || got.Topic != "t2" || got.Hash == nil {
		t.Errorf("%+v", got)
	}
	claimed, err := store.Claim(t.Context(), box.ClaimRequest{Consumer: "c", Owner: "w", Lease: time.Hour, Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	order := ""
	for _, m := range claimed {
		order += m.ID + " "
	}
	if order != "z1 b1 z2 b2 " {
		t.Errorf("claimed %s", order)
	}
}

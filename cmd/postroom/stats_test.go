package main

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

func TestStatsAreAlignedForPeopleAndStableForPrograms(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	res := summarise(&box.Stats{
		Now: now, OldestWaiting: now.Add(-192 * time.Second),
		Live: []box.LiveCount{
			{Consumer: "orders", Topic: "", Stage: postroom.StageSeen, N: 2},
			{Consumer: "orders", Topic: "order.paid", Stage: postroom.StageReady, N: 1234},
			{Consumer: "orders", Topic: "order.paid", Stage: postroom.StageDead, N: 5},
		},
		Totals: []box.Count{
			{Consumer: "mail", Topic: "sent", Name: box.CountDone, N: 7},
			{Consumer: "orders", Topic: "order.paid", Name: box.CountAccepted, N: 1234567},
			{Consumer: "orders", Topic: "order.paid", Name: box.CountDuplicate, N: 89},
			{Consumer: "orders", Topic: "order.paid", Name: "of a newer program", N: 1},
		},
		Tables: []box.TableSize{
			{Table: "postroom_message", Rows: 1234567, Bytes: 3 << 30, Estimated: true},
			{Table: "postroom_work", Rows: 1241, Bytes: 512},
			{Table: "postroom_lane"},
		},
	})
	res.Database = "postgres://app:xxxxx@db/shop"
	var people, programs strings.Builder
	res.print(&people)
	if err := printJSON(&programs, res); err != nil {
		t.Fatal(err)
	}
	golden(t, "stats", people.String())
	golden(t, "stats-json", programs.String())
}

func TestStatsCountByStateTopicAndConsumer(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db string) {
		must(t, "migrate", "--db", db)
		store := inStore(t, db)
		finish(t, store, "orders", 3)
		for _, consumer := range []string{"orders", "mail"} {
			b, err := box.New(store, consumer, box.Options{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			m := postroom.Message{Source: "test", ID: "waits", Topic: "order.new", Payload: []byte("{}")}
			for range 3 {
				if _, err := b.Receive(t.Context(), []postroom.Message{m}); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var res statsResult
		if err := json.Unmarshal([]byte(must(t, "stats", "--db", db, "--consumer", "orders", "--json")), &res); err != nil {
			t.Fatal(err)
		}
		if len(res.Live) != 1 || res.Live[0] != (liveStat{"orders", "order.new", "processing", "ready", 1}) {
			t.Errorf("live: %+v", res.Live)
		}
		if len(res.Totals) != 2 || res.Totals[0].Counts["duplicate"] != 2 || res.Totals[1].Counts["accepted"] != 3 {
			t.Errorf("totals: %+v", res.Totals)
		}
		if res.OldestWaiting == nil || len(res.Tables) < 5 {
			t.Errorf("%+v", res)
		}
		if got := must(t, "stats", "--db", db); !strings.Contains(got, "mail") {
			t.Errorf("all consumers: %s", got)
		}
	})
}

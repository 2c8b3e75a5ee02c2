package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

func TestCleanupRemovesOnlyWhatIsPastItsRetention(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db string) {
		must(t, "migrate", "--db", db)
		store := inStore(t, db)
		finish(t, store, "orders", 3)
		finish(t, store, "mail", 2)
		waiting := box.Put{Mode: box.Queue, Message: postroom.Message{Consumer: "orders", Source: "test", ID: "waits", Topic: "t", Payload: []byte("{}")}}
		if _, err := store.Put(t.Context(), nil, []box.Put{waiting}); err != nil {
			t.Fatal(err)
		}
		age(t, store.db, 10*day)

		must(t, "cleanup", "--db", db, "--days", "0")
		must(t, "cleanup", "--db", db, "--days", "11", "--payload-days", "11")
		if n := count(t, store.db, "message", "payload IS NOT NULL"); n != 6 {
			t.Fatalf("%d messages with payload before their retention, want 6", n)
		}
		golden(t, "cleanup-payloads", must(t, "cleanup", "--db", db, "--days", "0", "--payload-days", "9"))
		if n := count(t, store.db, "message", "payload IS NULL"); n != 5 {
			t.Errorf("%d payloads emptied, want 5", n)
		}
		golden(t, "cleanup-one", must(t, "cleanup", "--db", db, "--days", "9", "--consumer", "mail"))
		var res cleanupResult
		if err := json.Unmarshal([]byte(must(t, "cleanup", "--db", db, "--days", "9", "--json")), &res); err != nil {
			t.Fatal(err)
		}
		want := []consumerCleanup{{"mail", 0, 0, true}, {"orders", 3, 0, true}}
		if len(res.Consumers) != 2 || res.Consumers[0] != want[0] || res.Consumers[1] != want[1] {
			t.Errorf("%+v, want %+v", res.Consumers, want)
		}
		if n := count(t, store.db, "message", "true"); n != 1 {
			t.Errorf("%d messages left, want the one that waits", n)
		}
	})
}

func TestAnUnknownConsumerIsNoticed(t *testing.T) {
	db := "sqlite:" + t.TempDir() + "/box.db"
	must(t, "migrate", "--db", db)
	finish(t, inStore(t, db), "orders", 1)
	got := call(t, "cleanup", "--db", db, "--days", "1", "--consumer", "order")
	if got.status != exitOK || !strings.Contains(got.err, `"order" yet; known are: orders`) {
		t.Errorf("exit status %d, %s", got.status, got.err)
	}
}

// stopAtProgress ends the context when the first batch is reported.
type stopAtProgress struct {
	bytes.Buffer
	stop context.CancelFunc
}

func (s *stopAtProgress) Write(p []byte) (int, error) {
	s.stop()
	return s.Buffer.Write(p)
}

func TestCtrlCStopsCleanupAfterABatchAndTheNextRunGoesOn(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db string) {
		must(t, "migrate", "--db", db)
		store := inStore(t, db)
		finish(t, store, "orders", 2500)
		age(t, store.db, 10*day)
		ctx, cancel := context.WithCancel(t.Context())
		stderr := &stopAtProgress{stop: cancel}
		var stdout bytes.Buffer
		status := run(ctx, &terminal{out: &stdout, err: stderr, live: true}, []string{"cleanup", "--db", db, "--days", "9"})
		if status != exitFailure || !strings.Contains(stderr.String(), "run it again") {
			t.Errorf("exit status %d, %s", status, stderr.String())
		}
		if !strings.Contains(stdout.String(), "1,000") {
			t.Errorf("what was removed is not told: %s", stdout.String())
		}
		for _, table := range []string{"message", "done"} {
			if n := count(t, store.db, table, "true"); n != 1500 {
				t.Errorf("%d rows in %s, want 1500", n, table)
			}
		}
		if got := must(t, "cleanup", "--db", db, "--days", "9"); !strings.Contains(got, "1,500") {
			t.Errorf("the next run: %s", got)
		}
	})
}

func TestProgressIsPlainLinesOutsideOfATerminal(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&terminal{err: &out})
	p.show("%d", 1)
	p.last = time.Now().Add(-plainEvery)
	p.show("%d", 2)
	p.show("%d", 3)
	p.end()
	if got := out.String(); got != "2\n" {
		t.Errorf("%q, want one line", got)
	}
}

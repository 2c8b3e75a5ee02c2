package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/outbox"
)

// sold fills an outbox: two messages are sent, one is dead, one waits.
func sold(t *testing.T, db string) *outbox.Outbox {
	t.Helper()
	must(t, "migrate", "--db", db)
	out, err := outbox.New(inStore(t, db), outbox.Options{Source: "shop", MaxAttempts: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []postroom.Message{
		{ID: "1", Topic: "order.paid", Group: "o-1", Payload: []byte("{}")},
		{ID: "2", Topic: "order.paid", Payload: []byte("{}")},
		{ID: "3", Topic: "mail", Payload: []byte("{}")},
		{ID: "4", Topic: "order.paid", Payload: []byte("{}"), DueAt: time.Now().Add(24 * time.Hour)},
	} {
		if err := out.Publish(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	relay(t, out)
	return out
}

func relay(t *testing.T, out *outbox.Outbox) (sent []string) {
	t.Helper()
	sender := postroom.SenderFunc(func(_ context.Context, msgs []*postroom.Message) error {
		errs := make(postroom.SendErrors, len(msgs))
		for i, m := range msgs {
			if m.Topic == "mail" {
				errs[i] = errors.New("no such mailbox")
			}
			sent = append(sent, m.ID)
		}
		return errs.Err()
	})
	if err := outbox.NewRelay(out, outbox.To(sender), outbox.RelayOptions{InFlight: 1}).RunUntilIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	return sent
}

func TestOutboxListShowsWhatWaitsIsDeadOrWasSent(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db string) {
		sold(t, db)
		for args, want := range map[string]string{
			"":                       "1 2 3 4",
			"--state=done":           "1 2",
			"--state=dead":           "3",
			"--state=processing":     "4",
			"--topic=mail":           "3",
			"--group=o-1":            "1",
			"--overdue=1ns":          "",
			"--state=done --limit=1": "1",
		} {
			var msgs []outboxMessage
			if err := json.Unmarshal([]byte(must(t, append([]string{"outbox", "list", "--db", db, "--json"}, strings.Fields(args)...)...)), &msgs); err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, m := range msgs {
				ids = append(ids, m.ID)
			}
			if got := strings.Join(ids, " "); got != want {
				t.Errorf("list %s: %q, want %q", args, got, want)
			}
		}
		got := must(t, "outbox", "list", "--db", db, "--state", "dead")
		if !strings.Contains(got, "no such mailbox") || !strings.Contains(got, "NOTE") {
			t.Errorf("%s", got)
		}
	})
}

func TestOutboxStatsTellsWhatIsOverdue(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db string) {
		out := sold(t, db)
		if err := out.Publish(t.Context(), postroom.Message{ID: "5", Topic: "t", Payload: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		var res outboxStats
		if err := json.Unmarshal([]byte(must(t, "outbox", "stats", "--db", db, "--json", "--overdue", "15m")), &res); err != nil {
			t.Fatal(err)
		}
		if res.Overdue != 0 || len(res.Live) != 3 {
			t.Errorf("%d overdue, live %+v", res.Overdue, res.Live)
		}
		if got := must(t, "outbox", "stats", "--db", db); !strings.Contains(got, "Overdue, after 15m0s: 0\n") || !strings.Contains(got, "outbox    mail") {
			t.Errorf("%s", got)
		}
	})
}

func TestOutboxRewindCountsThenSendsAgainAndRefusesWhatWasPurged(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db string) {
		out := sold(t, db)
		for _, dry := range []string{"--dry-run", "--reason=broker lost data"} {
			var res rewindResult
			if err := json.Unmarshal([]byte(must(t, "outbox", "rewind", "--db", db, "--json", "--topic", "order.paid", dry)), &res); err != nil {
				t.Fatal(err)
			}
			if res.Messages != 2 || res.Purged != 0 {
				t.Errorf("%s: %+v", dry, res)
			}
			want := 0
			if dry != "--dry-run" {
				want = 2
			}
			if sent := relay(t, out); len(sent) != want {
				t.Errorf("%s: sent %v, want %d messages", dry, sent, want)
			}
		}
		if _, err := inStore(t, db).db.ExecContext(t.Context(), "UPDATE postroom_outbox_done SET purged = true"); err != nil {
			t.Fatal(err)
		}
		got := call(t, "outbox", "rewind", "--db", db, "--topic", "order.paid")
		if got.status != exitFailure || !strings.Contains(got.out, "0 messages will be sent again\n2 can't be: their payload was purged") {
			t.Errorf("exit status %d: %s%s", got.status, got.out, got.err)
		}
	})
}

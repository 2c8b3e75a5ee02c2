package outbox_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/outbox"
)

func TestRewind_sends_a_time_range_a_topic_or_a_group_again_under_the_same_ids(t *testing.T) {
	hour := func(n int) time.Time { return time.Date(2000, 1, 1, n, 0, 0, 0, time.UTC) } // where synctest begins
	for why, c := range map[string]struct {
		r    outbox.Range
		want []string
	}{
		"a time range":                   {outbox.Range{From: hour(1), Until: hour(3)}, []string{"b", "c"}},
		"a time range without an end":    {outbox.Range{From: hour(2)}, []string{"c", "d"}},
		"a topic, but nothing discarded": {outbox.Range{Topic: "x"}, []string{"a"}},
		"a group, in order":              {outbox.Range{Group: "g"}, []string{"c", "d"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := open(t, outbox.Options{})
			for _, m := range []postroom.Message{on("x", "a"), on("y", "b"), grouped("c", "g"), grouped("d", "g")} {
				w.publish(m)
				w.relay(&recorder{})
				time.Sleep(time.Hour)
			}
			w.publish(on("x", "never"))
			if err := w.out.Discard(t.Context(), "shop", "never", outbox.Order{}); err != nil {
				t.Fatal(err)
			}
			r := &recorder{}
			dry, err := w.out.Rewind(t.Context(), c.r, outbox.RewindOptions{DryRun: true})
			if err != nil || dry.Messages != len(c.want) {
				t.Errorf("%s: a dry run counts %+v, %v", why, dry, err)
			}
			w.relay(r)
			equal(t, r.ids(), nil, "a dry run sends nothing")
			done, err := w.out.Rewind(t.Context(), c.r, outbox.RewindOptions{Actor: "eve", Reason: "broker lost data"})
			if err != nil || done != dry {
				t.Errorf("%s: %+v, %v, want what the dry run counted, %+v", why, done, err, dry)
			}
			w.relay(r)
			equal(t, r.ids(), c.want, why)
			audit, err := w.out.Box().Audit(t.Context(), box.AuditFilter{})
			if err != nil || len(audit) != len(c.want) || audit[0].Actor != "eve" || audit[0].Reason != "broker lost data" {
				t.Errorf("audit %+v, %v", audit, err)
			}
		})
	}
}

func TestRewind_refuses_purged_payloads_and_an_empty_range(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, outbox.Options{})
		w.publish(on("x", "old"))
		w.relay(&recorder{})
		time.Sleep(time.Hour)
		if _, err := w.out.Box().Cleanup(t.Context(), time.Minute, 0); err != nil {
			t.Fatal(err)
		}
		w.publish(on("x", "new"))
		r := &recorder{}
		w.relay(r)
		want := outbox.Rewound{Messages: 1, Purged: 1}
		if got, err := w.out.Rewind(t.Context(), outbox.Range{Topic: "x"}, outbox.RewindOptions{DryRun: true}); err != nil || got != want {
			t.Errorf("dry run: %+v, %v, want %+v", got, err, want)
		}
		if got, err := w.out.Rewind(t.Context(), outbox.Range{Topic: "x"}, outbox.RewindOptions{}); !errors.Is(err, postroom.ErrPurged) || got != want {
			t.Errorf("%+v, %v, want %+v and ErrPurged", got, err, want)
		}
		w.relay(r)
		equal(t, r.ids(), []string{"new", "new"}, "what still has its payload is sent again")
		var arg *postroom.ArgumentError
		if _, err := w.out.Rewind(t.Context(), outbox.Range{}, outbox.RewindOptions{}); !errors.As(err, &arg) {
			t.Errorf("%v: all that was ever sent is no range", err)
		}
	})
}

package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/outbox"
)

var errDown = errors.New("broker is down")

func TestRelay_first_sent_and_second_failed_does_not_send_the_first_again(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, outbox.Options{})
		failures := 2
		r := &recorder{refuse: func(m *postroom.Message) error {
			if m.ID == "b" && failures > 0 {
				failures--
				return errDown
			}
			return nil
		}}
		w.publish(message("a"), message("b"), message("c"))
		stop := w.start(outbox.To(r), outbox.RelayOptions{})
		synctest.Wait()
		equal(t, r.ids(), []string{"a", "c"}, "what was confirmed is marked, and only that")
		if rec := w.get("b"); rec.State != postroom.StateProcessing || rec.Attempt != 1 || rec.LastError != errDown.Error() {
			t.Errorf("b is %v after %d attempts with %q", rec.State, rec.Attempt, rec.LastError)
		}
		time.Sleep(time.Minute)
		stop()
		equal(t, r.ids(), []string{"a", "c", "b"}, "each once, the failed one after its backoff")
		if got := w.get("b").Done; got.Runs != 3 || got.Handler != "*" {
			t.Errorf("%+v, want three runs by route *", got)
		}
	})
}

func TestRelay_an_error_for_the_whole_batch_confirms_nothing(t *testing.T) {
	w := open(t, outbox.Options{})
	w.publish(message("a"), message("b"))
	w.relay(postroom.SenderFunc(func(context.Context, []*postroom.Message) error { return errDown }))
	for _, id := range []string{"a", "b"} {
		if rec := w.get(id); rec.State != postroom.StateProcessing || rec.Attempt != 1 {
			t.Errorf("%s is %v after %d attempts", id, rec.State, rec.Attempt)
		}
	}
}

func TestRelay_a_miscounting_or_panicking_sender_confirms_nothing(t *testing.T) {
	for name, send := range map[string]postroom.SenderFunc{
		"too few errors": func(context.Context, []*postroom.Message) error { return postroom.SendErrors{nil} },
		"panic":          func(context.Context, []*postroom.Message) error { panic("oh") },
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, outbox.Options{})
			w.publish(message("a"), message("b"))
			w.relay(send)
			for _, id := range []string{"a", "b"} {
				if rec := w.get(id); rec.State != postroom.StateProcessing || rec.Attempt != 1 {
					t.Errorf("%s is %v after %d attempts", id, rec.State, rec.Attempt)
				}
			}
		})
	}
}

func TestRelay_never_gives_up_but_tells_once_when_a_message_is_overdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := &recorder{}
		w := open(t, outbox.Options{OnOverdue: func(ctx context.Context, r *outbox.Record) {
			_ = told.Send(ctx, []*postroom.Message{&r.Message})
		}})
		var up atomic.Bool
		r := &recorder{refuse: func(*postroom.Message) error {
			if !up.Load() {
				return errDown
			}
			return nil
		}}
		w.publish(grouped("head", "g"), grouped("behind", "g"))
		stop := w.start(outbox.To(r), outbox.RelayOptions{Poll: 10 * time.Second})
		time.Sleep(14 * time.Minute)
		synctest.Wait()
		equal(t, told.ids(), nil, "nothing has waited for 15 minutes")
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		equal(t, told.ids(), []string{"head", "behind"}, "the hook is called once for each, also for what waits behind")
		if n := strings.Count(w.log.String(), "message is overdue"); n != 2 {
			t.Errorf("%d warnings, want one for each", n)
		}
		stats, err := w.out.Stats(t.Context())
		if err != nil || stats.Overdue != 2 {
			t.Errorf("%d overdue, %v, want 2", stats.Overdue, err)
		}
		if rec := w.get("head"); rec.State != postroom.StateProcessing || rec.Attempt < 100 {
			t.Errorf("head is %v after %d attempts, want it to be tried on", rec.State, rec.Attempt)
		}
		up.Store(true)
		time.Sleep(2 * time.Minute)
		stop()
		equal(t, r.ids(), []string{"head", "behind"}, "both are sent in order at last")
	})
}

func TestRelay_tells_again_of_what_is_overdue_after_a_restart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := &recorder{}
		w := open(t, outbox.Options{OnOverdue: func(ctx context.Context, r *outbox.Record) {
			_ = told.Send(ctx, []*postroom.Message{&r.Message})
		}})
		down := postroom.SenderFunc(func(context.Context, []*postroom.Message) error { return errDown })
		w.publish(message("a"))
		for run := range 3 {
			time.Sleep(time.Hour)
			stop := w.start(outbox.To(down), outbox.RelayOptions{})
			time.Sleep(time.Hour)
			stop()
			if got := len(told.ids()); got != run+1 {
				t.Errorf("told %d times after %d runs, want once by each", got, run+1)
			}
			stats, err := w.out.Stats(t.Context())
			if err != nil || stats.Overdue != 1 {
				t.Errorf("%d overdue, %v: the number of messages does not depend on who told", stats.Overdue, err)
			}
		}
	})
}

func TestRelay_max_attempts_makes_dead_and_holds_the_group(t *testing.T) {
	for _, skip := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			dead := 0
			w := open(t, outbox.Options{MaxAttempts: 3, SkipDead: skip, OnDead: func(context.Context, postroom.DiedEvent) { dead++ }})
			r := &recorder{refuse: func(m *postroom.Message) error {
				if m.ID == "poison" {
					return errDown
				}
				return nil
			}}
			w.publish(grouped("poison", "g"), grouped("behind", "g"), grouped("elsewhere", "h"), message("free"))
			stop := w.start(outbox.To(r), outbox.RelayOptions{})
			time.Sleep(time.Minute)
			synctest.Wait()
			rec := w.get("poison")
			if rec.State != postroom.StateDead || rec.Attempt != 3 || rec.LastError != errDown.Error() || dead != 1 {
				t.Errorf("poison is %v after %d attempts with %q, told %d times", rec.State, rec.Attempt, rec.LastError, dead)
			}
			if skip {
				equal(t, slices.Sorted(slices.Values(r.ids())), []string{"behind", "elsewhere", "free"}, "the group goes on, by option")
			} else {
				equal(t, slices.Sorted(slices.Values(r.ids())), []string{"elsewhere", "free"}, "the group waits for its head, and it alone")
				if err := w.out.Discard(t.Context(), "shop", "poison", outbox.Order{Actor: "eve"}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				equal(t, slices.Sorted(slices.Values(r.ids())), []string{"behind", "elsewhere", "free"}, "an operator lets it go on")
			}
			stop()
		})
	}
}

func TestRelay_a_crash_between_send_and_mark_sends_the_same_id_again(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, outbox.Options{})
		w.publish(grouped("a", "g"), grouped("b", "g"))
		// A relay that died: what it claimed and sent was never marked.
		sent, err := w.out.Box().Claim(t.Context(), claim("dead relay"))
		if err != nil || len(sent) != 1 || sent[0].ID != "a" {
			t.Fatalf("claimed %v, %v, want the head of the group", sent, err)
		}
		r := &recorder{}
		stop := w.start(outbox.To(r), outbox.RelayOptions{})
		time.Sleep(20 * time.Second)
		equal(t, r.ids(), nil, "its group waits for it, for the time of the lease")
		time.Sleep(time.Minute)
		stop()
		equal(t, r.ids(), []string{"a", "b"}, "the same id goes again, before what follows it")
	})
}

func TestRelay_holds_a_message_whose_process_dies_and_never_makes_it_dead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, outbox.Options{})
		w.publish(message("killer"))
		box := w.out.Box()
		for range 8 {
			for _, suspect := range []bool{false, true} {
				req := claim("dies")
				req.Suspect = suspect
				if _, err := box.Claim(t.Context(), req); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Hour)
			if _, err := box.Reap(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.publish(message("killer")) // which also ends an expired lease
		}
		if rec := w.get("killer"); rec.Stage != postroom.StageSuspect || rec.Lost < 8 {
			t.Errorf("%v after %d lost leases, want a suspect", rec.Stage, rec.Lost)
		}
		r := &recorder{}
		w.relay(r)
		equal(t, r.ids(), []string{"killer"}, "it is sent when a process survives it")
	})
}

func TestRelay_deletes_at_once_by_option(t *testing.T) {
	w := open(t, outbox.Options{Retention: outbox.DeleteSent})
	w.publish(message("a"), grouped("b", "g"), grouped("c", "g"))
	r := &recorder{refuse: func(m *postroom.Message) error {
		if m.ID == "a" {
			return errDown
		}
		return nil
	}}
	w.relay(r)
	equal(t, r.ids(), []string{"b", "c"}, "all but the one that failed")
	equal(t, w.ids(), []string{"a"}, "nothing is left of what was sent")
}

func TestCleanup_keeps_what_was_sent_for_30_days(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, outbox.Options{})
		w.publish(message("sent"))
		w.relay(&recorder{})
		w.publish(message("waits"))
		for _, c := range []struct {
			after time.Duration
			left  []string
		}{
			{29 * 24 * time.Hour, []string{"sent", "waits"}},
			{2 * 24 * time.Hour, []string{"waits"}},
		} {
			time.Sleep(c.after)
			if _, err := w.out.Cleanup(t.Context()); err != nil {
				t.Fatal(err)
			}
			equal(t, w.ids(), c.left, "only what was sent longer ago is removed")
		}
	})
}

func TestRelay_a_slow_sender_is_told_and_tried_again(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, outbox.Options{})
		w.publish(message("a"))
		calls := 0
		stop := w.start(outbox.To(postroom.SenderFunc(func(ctx context.Context, _ []*postroom.Message) error {
			if calls++; calls == 1 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})), outbox.RelayOptions{SendTimeout: time.Minute})
		time.Sleep(61 * time.Second)
		if rec := w.get("a"); rec.Attempt != 1 || !strings.HasPrefix(rec.LastError, "sender took too long") {
			t.Errorf("%d attempts, %q", rec.Attempt, rec.LastError)
		}
		time.Sleep(time.Minute)
		stop()
		if rec := w.get("a"); rec.State != postroom.StateDone {
			t.Errorf("%v, want it sent", rec.State)
		}
	})
}

func TestRelay_stopping_costs_no_attempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, outbox.Options{})
		w.publish(message("a"))
		stop := w.start(outbox.To(postroom.SenderFunc(func(ctx context.Context, _ []*postroom.Message) error {
			<-ctx.Done()
			return ctx.Err()
		})), outbox.RelayOptions{SendTimeout: time.Hour, DrainTimeout: time.Second})
		synctest.Wait()
		stop()
		if rec := w.get("a"); rec.Attempt != 0 || rec.Stage != postroom.StageReady {
			t.Errorf("%v after %d attempts, want it ready at no cost", rec.Stage, rec.Attempt)
		}
	})
}

func TestRelay_a_commit_of_this_process_wakes_it(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, outbox.Options{})
		r := &recorder{}
		stop := w.start(outbox.To(r), outbox.RelayOptions{Poll: time.Hour})
		synctest.Wait()
		began := time.Now()
		w.publish(message("a"))
		synctest.Wait()
		equal(t, r.ids(), []string{"a"}, "a commit of this process wakes its relay")
		if took := time.Since(began); took != 0 {
			t.Errorf("after %v", took)
		}
		stop()
	})
}

func TestRelay_sends_nothing_of_a_paused_topic_until_it_is_resumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, outbox.Options{})
		r := &recorder{}
		stop := w.start(outbox.To(r), outbox.RelayOptions{})
		stopOther := w.start(outbox.To(r), outbox.RelayOptions{})
		by := outbox.Order{Actor: "ann", Reason: "the receiver is being repaired"}
		if err := w.out.Pause(t.Context(), "order.paid", by); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // two polls
		behind := on("order.shipped", "behind")
		behind.Group = "g"
		w.publish(message("free"), grouped("head", "g"), behind, on("order.shipped", "other"))
		time.Sleep(time.Minute)
		equal(t, r.ids(), []string{"other"}, "other topics go on, but for what follows a paused message of its group")
		if rec := w.get("free"); rec.Stage != postroom.StageParked || rec.Attempt != 0 {
			t.Errorf("%v after %d attempts, want it parked at no cost", rec.Stage, rec.Attempt)
		}
		if topics, err := w.out.Paused(t.Context()); err != nil || !slices.Equal(topics, []string{"order.paid"}) {
			t.Errorf("%v, %v", topics, err)
		}
		if err := w.out.Resume(t.Context(), "order.paid", by); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		stop()
		stopOther()
		if got := r.ids(); len(got) != 4 || slices.Index(got, "head") > slices.Index(got, "behind") {
			t.Errorf("sent %v, want each once, the group in order", got)
		}
	})
}

// A claim may bring several batches; how large one is, and how many are under way,
// are the sender's to bear.
func TestRelay_gives_a_sender_a_batch_at_a_time_and_no_more_than_it_may(t *testing.T) {
	const batch, inFlight, all = 5, 20, 100
	synctest.Test(t, func(t *testing.T) {
		w := open(t, outbox.Options{})
		var msgs []postroom.Message
		for i := range all {
			msgs = append(msgs, message(fmt.Sprint(i)))
		}
		w.publish(msgs...)
		var mu sync.Mutex
		largest, sending, most, sent := 0, 0, 0, 0
		stop := w.start(outbox.To(postroom.SenderFunc(func(_ context.Context, msgs []*postroom.Message) error {
			count := func(n int) {
				mu.Lock()
				defer mu.Unlock()
				sending += n
				largest, most, sent = max(largest, n), max(most, sending), sent+max(n, 0)
			}
			count(len(msgs))
			time.Sleep(time.Second)
			count(-len(msgs))
			return nil
		})), outbox.RelayOptions{Batch: batch, InFlight: inFlight})
		time.Sleep(time.Minute)
		stop()
		if largest != batch || most != inFlight || sent != all {
			t.Errorf("%d sent, %d at once, %d in one call; want %d, %d, %d", sent, most, largest, all, inFlight, batch)
		}
	})
}

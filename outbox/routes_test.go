package outbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/outbox"
)

func claim(owner string) box.ClaimRequest {
	return box.ClaimRequest{Owner: owner, Lease: 30 * time.Second, Limit: 10}
}

func on(topic, id string) postroom.Message {
	m := message(id)
	m.Topic = topic
	return m
}

func TestRoutes_each_topic_goes_to_its_sender_and_one_without_is_dead(t *testing.T) {
	w := open(t, outbox.Options{})
	exact, orders := &recorder{}, &recorder{}
	routes := outbox.NewRoutes()
	for pattern, s := range map[string]postroom.Sender{"order.paid": exact, "order.*": orders} {
		if err := routes.Send(pattern, s); err != nil {
			t.Fatal(err)
		}
	}
	w.publish(on("order.paid", "a"), on("order.shipped", "b"), on("order.shipped", "c"), on("mail.sent", "d"))
	if err := outbox.NewRelay(w.out, routes, outbox.RelayOptions{}).RunUntilIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal(t, exact.ids(), []string{"a"}, "the pattern that fits best wins")
	equal(t, orders.ids(), []string{"b", "c"}, "a sender gets its messages in order")
	rec := w.get("d")
	if want := `no route for topic "mail.sent": the relay has order.*, order.paid`; rec.State != postroom.StateDead || rec.LastError != want {
		t.Errorf("%v with %q, want dead with %q", rec.State, rec.LastError, want)
	}
	if got := w.get("b").Done.Handler; got != "order.*" {
		t.Errorf("the record names route %q", got)
	}
}

func TestRoutes_a_registration_that_cannot_work_fails_the_start(t *testing.T) {
	w := open(t, outbox.Options{})
	for why, register := range map[string]func(r *outbox.Routes) error{
		"is empty":             func(r *outbox.Routes) error { return r.Send("", &recorder{}) },
		"only as all of it":    func(r *outbox.Routes) error { return r.Send("a*", &recorder{}) },
		"is nil":               func(r *outbox.Routes) error { return r.Send("a", nil) },
		"has a sender already": func(r *outbox.Routes) error { _ = r.Send("a", &recorder{}); return r.Send("a", &recorder{}) },
	} {
		routes := outbox.NewRoutes()
		if err := register(routes); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("got %v, want an error with %q", err, why)
		}
		if err := outbox.NewRelay(w.out, routes, outbox.RelayOptions{}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("run gave %v, want an error with %q", err, why)
		}
	}
}

package inbox_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
)

func TestIBX073_021_the_mux_finds_the_handler_of_a_topic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		mux := inbox.NewMux()
		got := map[string]string{}
		for _, pattern := range []string{"order.paid", "order.*", "order.eu.*", "*"} {
			ok(t, mux.HandleFunc(pattern, func(_ context.Context, m *postroom.Message) error {
				got[m.Topic] = pattern
				return nil
			}))
		}
		want := map[string]string{
			"order.paid": "order.paid", "order.Paid": "order.*", "order.eu.paid": "order.eu.*", "order.": "order.*",
			"order": "*", "orders.paid": "*", "Order.paid": "*",
		}
		for topic := range want {
			m := message(topic)
			m.Topic = topic
			_, err := f.Receive(t.Context(), m)
			ok(t, err)
		}
		ok(t, inbox.NewWorker(f.Inbox, mux, inbox.WorkerOptions{Concurrency: 1}).RunUntilIdle(t.Context()))
		for topic, pattern := range want {
			if got[topic] != pattern {
				t.Errorf("%q went to %q, want %q", topic, got[topic], pattern)
			}
		}
	})
}

func TestRegistrationErrorsAreReturned(t *testing.T) {
	h := postroom.HandlerFunc(func(context.Context, *postroom.Message) error { return nil })
	mux := inbox.NewMux()
	ok(t, mux.Handle("a", h))
	for _, pattern := range []string{"", "a", "a*", "*.a", "a.*.b", ".*", "**"} {
		wantArgument(t, mux.Handle(pattern, h), "pattern")
	}
	wantArgument(t, mux.Handle("b", nil), "handler")
	wantArgument(t, mux.HandleFunc("b", nil), "handler")
	wantArgument(t, mux.HandleBatch("b", nil, inbox.HandlerOptions{}), "handler")
	wantArgument(t, mux.HandleWith("b", h, inbox.HandlerOptions{Timeout: -1}), "Timeout")
	wantArgument(t, mux.HandleWith("b", h, inbox.HandlerOptions{MaxAttempts: -1}), "MaxAttempts")
}

func TestMiddlewareWrapsInOrderAndSeesTheTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		var trace []string
		step := func(name string) inbox.Middleware {
			return func(next postroom.Handler) postroom.Handler {
				return postroom.HandlerFunc(func(ctx context.Context, m *postroom.Message) error {
					_, inTx := inbox.TxFrom(ctx)
					if !inTx {
						t.Error("no transaction in the middleware")
					}
					trace = append(trace, name)
					return next.Handle(ctx, m)
				})
			}
		}
		mux := inbox.NewMux()
		mux.Use(step("a"), step("b"))
		ok(t, mux.Handle("order.paid", postroom.TxHandlerFunc(func(context.Context, postroom.Tx, *postroom.Message) error {
			trace = append(trace, "handler")
			return nil
		})))
		f.receive(t, "1")
		ok(t, inbox.NewWorker(f.Inbox, mux, inbox.WorkerOptions{}).RunUntilIdle(t.Context()))
		if got := strings.Join(trace, " "); got != "a b handler" {
			t.Errorf("ran %q", got)
		}
	})
}

type paid struct {
	Order  string `json:"order"`
	Amount int    `json:"amount"`
}

func TestJSONHandlersDecodeAndNeverQuoteThePayload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, inbox.Options{})
		var got []paid
		mux := inbox.NewMux()
		ok(t, mux.Handle("plain", inbox.JSON(func(ctx context.Context, p paid) error {
			if m, found := inbox.MessageFrom(ctx); !found || m.ID != "0" {
				t.Error("no message in the context")
			}
			got = append(got, p)
			return nil
		})))
		ok(t, mux.Handle("tx", inbox.JSONTx(func(_ context.Context, tx postroom.Tx, p paid) error {
			if tx == nil {
				t.Error("no transaction")
			}
			got = append(got, p)
			return nil
		})))
		const secret = "4242424242"
		for i, m := range []postroom.Message{
			{Topic: "plain", Payload: []byte(`{"order":"a","amount":1}`)},
			{Topic: "tx", Payload: []byte(`{"order":"b","amount":2}`)},
			{Topic: "plain", Payload: []byte(`{"order":` + secret + `}`)},
			{Topic: "plain", Payload: []byte(`{"amount":"` + secret + `"}`)},
			{Topic: "tx", Payload: []byte(`{"amount":` + secret + `.5}`)},
			{Topic: "plain", Payload: []byte(secret + `x`)},
			{Topic: "plain", Payload: []byte{}},
		} {
			m.Source, m.ID = "shop", string(rune('0'+i))
			_, err := f.Receive(t.Context(), m)
			ok(t, err)
		}
		ok(t, inbox.NewWorker(f.Inbox, mux, inbox.WorkerOptions{Concurrency: 1}).RunUntilIdle(t.Context()))
		if len(got) != 2 || got[0] != (paid{"a", 1}) || got[1] != (paid{"b", 2}) {
			t.Errorf("decoded %v", got)
		}
		for _, id := range []string{"2", "3", "4", "5", "6"} {
			f.wantState(t, id, postroom.StateDead)
			if e := f.record(t, id).LastError; strings.Contains(e, secret) || !strings.Contains(e, "decode payload as inbox_test.paid") {
				t.Errorf("%s died with %q", id, e)
			}
		}
		if len(f.logs.with(secret)) != 0 {
			t.Errorf("the payload is in the log: %s", f.logs.with(secret))
		}
	})
}

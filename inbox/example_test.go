package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/memstore"
)

// quiet keeps log lines out of the examples.
var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// A message that comes twice is handled once.
func Example() {
	ctx := context.Background()
	in := must(inbox.New(memstore.New(memstore.Options{}), "shop", inbox.Options{Logger: quiet}))
	paid := postroom.Message{Source: "bank", ID: "pay_1", Topic: "payment.received", Payload: []byte(`{"cents":4200}`)}
	for range 2 {
		res, err := in.Receive(ctx, paid)
		fmt.Println(res.Outcome, err) // acknowledge the sender when err is nil
	}

	mux := inbox.NewMux()
	_ = mux.Handle("payment.*", inbox.JSON(func(_ context.Context, p struct{ Cents int }) error {
		fmt.Println("handled", p.Cents)
		return nil
	}))
	err := inbox.NewWorker(in, mux, inbox.WorkerOptions{}).RunUntilIdle(ctx)
	fmt.Println(err)
	// Output:
	// accepted <nil>
	// duplicate <nil>
	// handled 4200
	// <nil>
}

// The mark and what the handler writes in tx commit together.
func ExampleInbox_Once() {
	ctx := context.Background()
	in := must(inbox.New(memstore.New(memstore.Options{}), "shop", inbox.Options{Logger: quiet}))
	m := postroom.Message{Source: "bank", ID: "pay_1"}
	full := true
	book := func(context.Context, postroom.Tx, *postroom.Message) error {
		if full {
			return errors.New("disk full")
		}
		fmt.Println("booked")
		return nil
	}
	_, err := in.Once(ctx, m, book, inbox.OnceOptions{})
	fmt.Println("not acknowledged:", err)
	full = false
	for range 2 {
		res, err := in.Once(ctx, m, book, inbox.OnceOptions{})
		fmt.Println(res.Outcome, err)
	}
	// Output:
	// not acknowledged: disk full
	// booked
	// accepted <nil>
	// duplicate <nil>
}

// OnceTx marks a message in a transaction that you began and that you commit.
func ExampleInbox_OnceTx() {
	ctx := context.Background()
	store := memstore.New(memstore.Options{}) // else: sqlstore.Tx(tx), pgxstore.Tx(tx)
	in := must(inbox.New(store, "shop", inbox.Options{Logger: quiet}))
	for range 2 {
		tx := must(store.Begin(ctx))
		first, err := in.OnceTx(ctx, tx, postroom.Message{Source: "bank", ID: "pay_1"})
		fmt.Println(first, err)
		if first {
			err = tx.Commit(ctx) // after your own statements
		} else {
			err = tx.Rollback(ctx)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// true <nil>
	// false <nil>
}

// Without ReleaseOnError a failed message is dead: it is not run again.
func ExampleInbox_Guard() {
	ctx := context.Background()
	in := must(inbox.New(memstore.New(memstore.Options{}), "mail", inbox.Options{Logger: quiet}))
	send := func(_ context.Context, m *postroom.Message) error {
		fmt.Println("sending", m.ID)
		return errors.New("connection reset")
	}
	for _, o := range []inbox.GuardOptions{{}, {ReleaseOnError: true}} {
		m := postroom.Message{Source: "shop", ID: fmt.Sprintf("release-%t", o.ReleaseOnError)}
		for range 2 {
			_, err := in.Guard(ctx, m, send, o)
			fmt.Println(err, errors.Is(err, postroom.ErrDead))
		}
	}
	// Output:
	// sending release-false
	// connection reset false
	// postroom: message is dead true
	// sending release-true
	// connection reset false
	// sending release-true
	// connection reset false
}

// Idempotent wraps the handlers of a program that consumes by other means.
func ExampleInbox_Idempotent() {
	ctx := context.Background()
	in := must(inbox.New(memstore.New(memstore.Options{}), "mail", inbox.Options{Logger: quiet}))
	once := must(in.Idempotent(inbox.IdempotentOptions{Mode: inbox.ModeGuard}))
	handle := once(func(_ context.Context, m postroom.Message) error {
		fmt.Println("sending", m.ID)
		return nil
	})
	for range 2 {
		err := handle(ctx, postroom.Message{Source: "shop", ID: "order_7"})
		fmt.Println("acknowledge:", err == nil)
	}
	// Output:
	// sending order_7
	// acknowledge: true
	// acknowledge: true
}

// Rules decide about errors that handlers did not wrap in a verdict.
func ExampleOn() {
	ctx := context.Background()
	in := must(inbox.New(memstore.New(memstore.Options{}), "shop", inbox.Options{Logger: quiet}))
	gone := errors.New("customer is gone")
	mux := inbox.NewMux()
	_ = mux.HandleWith("customer.*", postroom.HandlerFunc(func(context.Context, *postroom.Message) error {
		return fmt.Errorf("greet: %w", gone)
	}), inbox.HandlerOptions{Rules: []inbox.Rule{
		inbox.On(gone, inbox.DiscardIt),
		inbox.On(context.DeadlineExceeded, inbox.RetryIn(time.Minute)),
	}})
	must(in.Receive(ctx, postroom.Message{Source: "crm", ID: "1", Topic: "customer.moved", Payload: []byte("{}")}))
	if err := inbox.NewWorker(in, mux, inbox.WorkerOptions{}).RunUntilIdle(ctx); err != nil {
		log.Fatal(err)
	}
	r := must(in.Get(ctx, "crm", "1"))
	fmt.Println(r.State, r.Done.Discarded, r.Done.Note)
	// Output: done true greet: customer is gone
}

// Dead letters are looked at and given a fresh start.
func ExampleInbox_RequeueAll() {
	ctx := context.Background()
	in := must(inbox.New(memstore.New(memstore.Options{}), "shop", inbox.Options{Logger: quiet}))
	fixed := false
	mux := inbox.NewMux()
	_ = mux.HandleFunc("order.paid", func(context.Context, *postroom.Message) error {
		if !fixed {
			return postroom.Permanent(errors.New("no such column"))
		}
		return nil
	})
	worker := inbox.NewWorker(in, mux, inbox.WorkerOptions{})
	must(in.Receive(ctx, postroom.Message{Source: "bank", ID: "1", Topic: "order.paid", Payload: []byte("{}")}))
	if err := worker.RunUntilIdle(ctx); err != nil {
		log.Fatal(err)
	}
	for r, err := range in.Dead(ctx) {
		fmt.Println(r.ID, r.LastError, err)
	}

	fixed = true
	n := must(in.RequeueAll(ctx, inbox.Filter{Topic: "order.paid"}, inbox.Order{Actor: "ann", Reason: "deployed the fix"}))
	if err := worker.RunUntilIdle(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(n, must(in.Get(ctx, "bank", "1")).State)
	// Output:
	// 1 no such column <nil>
	// 1 done
}

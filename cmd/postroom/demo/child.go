package demo

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/sqlstore"
)

// A Store is an open store and what the demo needs besides.
type Store struct {
	*sqlstore.Store
	DB *sql.DB
	// Effects is the quoted name of the table of effects.
	Effects string
	// Marks: the driver knows no numbered parameters, only marks.
	Marks bool
	// Suspend ends the leases of a consumer behind the backs of their holders.
	Suspend func(ctx context.Context, consumer string) error
	Close   func()
}

var parameter = regexp.MustCompile(`\$[0-9]+`)

// SQL gives a statement, whose parameters are numbered in the order of their
// use, as the driver takes it.
func (s *Store) SQL(text string) string {
	if !s.Marks {
		return text
	}
	return parameter.ReplaceAllString(text, "?")
}

// Variable holds the task of a child process; the parent sets it.
const Variable = "POSTROOM_DEMO_TASK"

// A task is what a child process is for.
type task struct {
	Plan
	// Sender is which sender it is; -1: a worker.
	Sender int
	// From is the delivery that a sender begins with.
	From int
	// Log is the file that it writes its log to.
	Log string
}

// Child does the task that the parent gave, until that is done or stdin ends,
// which is also what happens when the parent dies. It tells what it does, a line
// per event, on stdout: what was written there survives the writer.
func Child(ctx context.Context, text string, open func(context.Context) (*Store, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	err := child(ctx, text, open)
	// Whatever was cut off by the end is made up for by others.
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func child(ctx context.Context, text string, open func(context.Context) (*Store, error)) error {
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return fmt.Errorf("read %s: %w", Variable, err)
	}
	log, err := os.OpenFile(t.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	store, err := open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	in, err := inbox.New(store.Store, t.Consumer, inbox.Options{
		Logger: slog.New(slog.NewTextHandler(log, nil)).With("process", os.Getpid()),
		Observer: &postroom.Observer{
			Finished: func(_ context.Context, e postroom.FinishedEvent) { say(wordFor(e.Err)) },
			Lost:     func(context.Context, postroom.LostEvent) { say("lost") },
			Died:     func(context.Context, postroom.DiedEvent) { say("died") },
		},
	})
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	if t.Sender < 0 {
		return t.work(ctx, in, store)
	}
	return t.send(ctx, in)
}

// say tells the parent. One write is one line, whole or not at all.
func say(word string, numbers ...int) {
	line := word
	for _, n := range numbers {
		line = fmt.Sprint(line, " ", n)
	}
	_, _ = fmt.Fprintln(os.Stdout, line)
}

// wordFor says how a run ended.
func wordFor(err error) string {
	var panicked *postroom.PanicError
	switch {
	case err == nil:
		return "succeeded"
	case errors.As(err, &panicked):
		return "panicked"
	case errors.Is(err, errFailed):
		return "failed"
	case errors.Is(err, errMalformed):
		return "refused"
	case errors.Is(err, context.DeadlineExceeded):
		return "overtime"
	default:
		// Its lease was lost, or its worker was to stop.
		return "interrupted"
	}
}

// rest waits, and reports whether the context lasted as long.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

package main

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

type cleanupCommand struct {
	database    `embed:""`
	Days        int    `required:"" placeholder:"N" help:"Forget messages that were done more than N days ago. 0: keep them for ever."`
	PayloadDays int    `placeholder:"M" help:"Empty payload and headers of messages that were done more than M days ago, and keep their records. 0, the default: payloads go with their records."`
	Consumer    string `placeholder:"NAME" help:"Only this consumer. Default: all that have ever been counted."`
	JSON        bool   `name:"json" help:"Print JSON."`
}

// Help gives the examples and what a record is for.
func (*cleanupCommand) Help() string {
	return `Examples:

  postroom cleanup --db sqlite:box.db --days 30
  postroom cleanup --days 0 --payload-days 7      # records for ever, payloads a week
  postroom cleanup --days 30 --consumer orders

Only messages that are done are ever removed. As long as its record is there, a
late duplicate of a message is recognised; afterwards it is a new message. So keep
records for longer than the sender may repeat itself.

It works in batches, each with its own commit. Ctrl-C stops after the batch in
hand; what was removed stays removed, and the next run goes on from there.`
}

// cleanupResult is the output of cleanup as JSON.
type cleanupResult struct {
	Database  string            `json:"database"`
	Consumers []consumerCleanup `json:"consumers"`
}

type consumerCleanup struct {
	Consumer string `json:"consumer"`
	Records  int64  `json:"records"`
	Payloads int64  `json:"payloads"`
	// Complete is false when it was stopped before the end.
	Complete bool `json:"complete"`
}

// maxDays is a century; a number beyond it is a slip.
const maxDays = 36_500

// Run cleans up.
func (c *cleanupCommand) Run(ctx context.Context, term *terminal) error {
	for flag, days := range map[string]int{"--days": c.Days, "--payload-days": c.PayloadDays} {
		if days < 0 || days > maxDays {
			return usagef("%s %d: allowed are 1 to %d, or 0 for ever", flag, days, maxDays)
		}
	}
	if c.Consumer != "" {
		if err := postroom.ValidateConsumer(c.Consumer); err != nil {
			return usageError{err}
		}
	}
	store, err := c.open(ctx, false)
	if err != nil {
		return err
	}
	defer store.close()
	if err := store.Check(ctx); err != nil {
		return err
	}
	consumers, err := c.consumers(ctx, store, term)
	if err != nil {
		return err
	}
	res := &cleanupResult{Database: store.label, Consumers: []consumerCleanup{}}
	for _, consumer := range consumers {
		var one consumerCleanup
		one, err = c.clean(ctx, store, consumer, term)
		res.Consumers = append(res.Consumers, one)
		if err != nil {
			break
		}
	}
	if printErr := c.print(term, res); printErr != nil {
		return printErr
	}
	if err != nil && ctx.Err() != nil {
		return errors.New("stopped before the end; run it again to go on")
	}
	return err
}

// consumers gives those to clean up. A name that nothing is known of may be
// mistyped, which is said; it is cleaned up all the same, because the totals of
// a program that crashed may be missing.
func (c *cleanupCommand) consumers(ctx context.Context, store *opened, term *terminal) ([]string, error) {
	stats, err := store.Stats(ctx, "")
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, l := range stats.Live {
		known[l.Consumer] = true
	}
	for _, t := range stats.Totals {
		known[t.Consumer] = true
	}
	names := slices.Sorted(maps.Keys(known))
	if c.Consumer == "" {
		return names, nil
	}
	if !known[c.Consumer] {
		term.say("postroom: nothing was counted for consumer %q yet; known are: %s\n", c.Consumer, strings.Join(names, ", "))
	}
	return []string{c.Consumer}, nil
}

const day = 24 * time.Hour

func (c *cleanupCommand) clean(ctx context.Context, store *opened, consumer string, term *terminal) (consumerCleanup, error) {
	one := consumerCleanup{Consumer: consumer}
	progress := newProgress(term)
	defer progress.end()
	b, err := box.New(store, consumer, box.Options{
		Logger: slog.New(slog.DiscardHandler),
		Observer: &postroom.Observer{CleanedUp: func(_ context.Context, e postroom.CleanedUpEvent) {
			one.Records += int64(e.Records)
			one.Payloads += int64(e.Payloads)
			progress.show("%s: %s records and %s payloads removed", consumer, grouped(one.Records), grouped(one.Payloads))
		}},
	})
	if err != nil {
		return one, err
	}
	_, err = b.Cleanup(ctx, time.Duration(c.PayloadDays)*day, time.Duration(c.Days)*day)
	one.Complete = err == nil
	return one, err
}

func (c *cleanupCommand) print(term *terminal, res *cleanupResult) error {
	if c.JSON {
		return printJSON(term.out, res)
	}
	if len(res.Consumers) == 0 {
		return term.print(res.Database + ": nothing to clean up, there is no consumer\n")
	}
	t := table{header: []string{"CONSUMER", "RECORDS REMOVED", "PAYLOADS EMPTIED"}}
	for _, one := range res.Consumers {
		t.add(one.Consumer, one.Records, one.Payloads)
	}
	var b strings.Builder
	t.print(&b)
	return term.print(b.String())
}

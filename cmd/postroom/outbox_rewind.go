package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/outbox"
)

type outboxRewindCommand struct {
	database `embed:""`
	From     time.Time `placeholder:"TIME" help:"What was sent from this time on, as 2026-11-15T14:00:00Z."`
	Until    time.Time `placeholder:"TIME" help:"What was sent before this time."`
	Topic    string    `placeholder:"NAME" help:"Only this topic."`
	Group    string    `placeholder:"NAME" help:"Only this group."`
	Source   string    `placeholder:"NAME" help:"Only this source."`
	DryRun   bool      `help:"Change nothing; only count."`
	Actor    string    `env:"USER" placeholder:"NAME" help:"Who does it, for the audit. Default: the user."`
	Reason   string    `placeholder:"TEXT" help:"Why, for the audit."`
	JSON     bool      `name:"json" help:"Print JSON."`
}

// Help gives the examples.
func (*outboxRewindCommand) Help() string {
	return `Examples:

  postroom outbox rewind --from 2026-11-15T14:00:00Z --until 2026-11-15T15:00:00Z --dry-run
  postroom outbox rewind --topic order.paid --reason "broker lost its disk"
  postroom outbox rewind --group order-7

At least one of --from, --until, --topic, --group and --source is needed. The
messages are sent again by the relays of the program, under the same ids, so that
whoever still has them recognises them. Messages whose payload was purged can't
be; the others are rewound, and the exit status is 1.`
}

// rewindResult is the output of outbox rewind as JSON.
type rewindResult struct {
	Database string `json:"database"`
	DryRun   bool   `json:"dry_run"`
	Messages int    `json:"messages"`
	// Purged are those that can't be sent again.
	Purged int `json:"purged"`
}

// Run rewinds, or counts.
func (c *outboxRewindCommand) Run(ctx context.Context, term *terminal) error {
	r := outbox.Range{From: c.From, Until: c.Until, Topic: c.Topic, Group: c.Group, Source: c.Source}
	if r == (outbox.Range{}) {
		return usagef("what is to be sent again? Give --from, --until, --topic, --group or --source")
	}
	store, out, err := c.openOutbox(ctx, outbox.Options{})
	if err != nil {
		return err
	}
	defer store.close()
	done, err := out.Rewind(ctx, r, outbox.RewindOptions{DryRun: c.DryRun, Actor: c.Actor, Reason: c.Reason})
	if err != nil && !errors.Is(err, postroom.ErrPurged) {
		return err
	}
	if err := c.print(term, rewindResult{store.label, c.DryRun, done.Messages, done.Purged}); err != nil {
		return err
	}
	if done.Purged > 0 {
		return errFound
	}
	return nil
}

func (c *outboxRewindCommand) print(term *terminal, res rewindResult) error {
	if c.JSON {
		return printJSON(term.out, res)
	}
	verb := "will be sent again"
	if res.DryRun {
		verb = "would be sent again"
	}
	text := fmt.Sprintf("%s: %s messages %s\n", res.Database, grouped(int64(res.Messages)), verb)
	if res.Purged > 0 {
		text += fmt.Sprintf("%s can't be: their payload was purged\n", grouped(int64(res.Purged)))
	}
	return term.print(text)
}

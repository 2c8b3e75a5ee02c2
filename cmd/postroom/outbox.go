package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/postroom/postroom/outbox"
)

// outboxCommand looks after what leaves.
type outboxCommand struct {
	Stats  outboxStatsCommand  `cmd:"" help:"Show what waits to be sent, what is overdue, and how large the tables are."`
	List   outboxListCommand   `cmd:"" help:"List messages that wait, are dead or were sent."`
	Rewind outboxRewindCommand `cmd:"" help:"Send again what was sent before, under the same ids."`
}

// openOutbox opens the outbox beside the tables that the flags name.
func (d *database) openOutbox(ctx context.Context, o outbox.Options) (*opened, *outbox.Outbox, error) {
	store, err := d.open(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	if err := store.Check(ctx); err != nil {
		store.close()
		return nil, nil, err
	}
	o.Logger = slog.New(slog.DiscardHandler)
	out, err := outbox.New(store, o)
	if err != nil {
		store.close()
		return nil, nil, usageError{err}
	}
	return store, out, nil
}

type outboxStatsCommand struct {
	database `embed:""`
	Overdue  time.Duration `default:"15m" placeholder:"TIME" help:"How long a message may wait before it is overdue. Default: ${default}."`
	JSON     bool          `name:"json" help:"Print JSON."`
}

// Help gives the examples.
func (*outboxStatsCommand) Help() string {
	return `Examples:

  postroom outbox stats --db sqlite:shop.db
  postroom outbox stats --overdue 1m --json | jq '.overdue'

The numbers are those of 'postroom stats', for the outbox. Overdue is what has
waited for too long, whatever for: a broker that is down, the head of its group,
a message that kills its relay. 10,000 stands for that many or more.`
}

// outboxStats is the output of outbox stats as JSON.
type outboxStats struct {
	statsResult
	Overdue        int     `json:"overdue"`
	OverdueSeconds float64 `json:"overdue_seconds"`
}

// Run prints an overview.
func (c *outboxStatsCommand) Run(ctx context.Context, term *terminal) error {
	store, out, err := c.openOutbox(ctx, outbox.Options{Overdue: c.Overdue})
	if err != nil {
		return err
	}
	defer store.close()
	stats, err := out.Stats(ctx)
	if err != nil {
		return err
	}
	res := outboxStats{*summarise(&stats.Stats), stats.Overdue, c.Overdue.Seconds()}
	res.Database = store.label
	if c.JSON {
		return printJSON(term.out, res)
	}
	var b strings.Builder
	res.print(&b)
	fmt.Fprintf(&b, "\nOverdue, after %s: %s\n", c.Overdue, grouped(int64(res.Overdue)))
	return term.print(b.String())
}

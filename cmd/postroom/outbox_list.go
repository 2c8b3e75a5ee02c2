package main

import (
	"context"
	"strings"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/outbox"
)

type outboxListCommand struct {
	database `embed:""`
	State    string        `enum:",processing,dead,done" default:"" placeholder:"NAME" help:"Only this state: processing, dead or done, which is sent. Default: all."`
	Topic    string        `placeholder:"NAME" help:"Only this topic."`
	Group    string        `placeholder:"NAME" help:"Only this group."`
	Source   string        `placeholder:"NAME" help:"Only this source."`
	Overdue  time.Duration `placeholder:"TIME" help:"Only what has waited to be sent for longer than this."`
	After    int64         `placeholder:"SEQ" help:"Only what comes after this number, the last of the page before."`
	Limit    int           `default:"100" placeholder:"N" help:"How many at most, up to 1,000. Default: ${default}."`
	JSON     bool          `name:"json" help:"Print JSON."`
}

// Help gives the examples.
func (*outboxListCommand) Help() string {
	return `Examples:

  postroom outbox list --db sqlite:shop.db --state dead
  postroom outbox list --overdue 15m
  postroom outbox list --group order-7 --json

Messages come in the order in which they were added. Payloads and headers are not
shown.`
}

// outboxMessage is one message in the output of outbox list as JSON.
type outboxMessage struct {
	Seq     int64      `json:"seq"`
	Source  string     `json:"source"`
	ID      string     `json:"id"`
	Topic   string     `json:"topic"`
	Group   string     `json:"group"`
	State   string     `json:"state"`
	Stage   string     `json:"stage"`
	Attempt int        `json:"attempt"`
	Added   time.Time  `json:"added"`
	Next    *time.Time `json:"next"`
	Sent    *time.Time `json:"sent"`
	Route   string     `json:"route"`
	// Note is the last error, or why a message was discarded.
	Note string `json:"note"`
}

// Run lists one page.
func (c *outboxListCommand) Run(ctx context.Context, term *terminal) error {
	f := outbox.Filter{Topic: c.Topic, Group: c.Group, Source: c.Source, Overdue: c.Overdue, After: c.After, Limit: c.Limit}
	if c.Limit < 1 || c.Limit > 1000 {
		return usagef("--limit %d: allowed are 1 to 1000", c.Limit)
	}
	switch {
	case c.State != "":
		state, err := postroom.ParseState(c.State)
		if err != nil {
			return usageError{err}
		}
		if c.Overdue != 0 && state != postroom.StateProcessing {
			return usagef("--overdue is about messages that wait: leave out --state, or give --state processing")
		}
		f.State = state
	case c.Overdue != 0:
		f.State = postroom.StateProcessing
	}
	store, out, err := c.openOutbox(ctx, outbox.Options{})
	if err != nil {
		return err
	}
	defer store.close()
	page, err := out.List(ctx, f)
	if err != nil {
		return err
	}
	msgs := make([]outboxMessage, len(page))
	for i, rec := range page {
		msgs[i] = listed(rec)
	}
	if c.JSON {
		return printJSON(term.out, msgs)
	}
	return term.print(printMessages(msgs))
}

func listed(rec *outbox.Record) outboxMessage {
	m := outboxMessage{
		Seq: rec.Seq, Source: rec.Source, ID: rec.ID, Topic: rec.Topic, Group: rec.Group,
		State: rec.State.String(), Stage: rec.Stage.String(), Attempt: rec.Attempt, Added: rec.FirstSeen.UTC(), Note: rec.LastError,
	}
	if !rec.NextAt.IsZero() {
		m.Next = new(time.Time)
		*m.Next = rec.NextAt.UTC()
	}
	if rec.State == postroom.StateDone {
		m.Stage, m.Attempt, m.Route, m.Note = "", rec.Done.Runs, rec.Done.Handler, rec.Done.Note
		m.Sent = new(time.Time)
		*m.Sent = rec.Done.At.UTC()
	}
	return m
}

// noteWidth keeps an error from breaking a table.
const noteWidth = 60

func printMessages(msgs []outboxMessage) string {
	if len(msgs) == 0 {
		return "No message.\n"
	}
	t := table{header: []string{"SEQ", "ID", "TOPIC", "GROUP", "STATE", "STAGE", "ATTEMPT", "ADDED", "NOTE"}}
	for _, m := range msgs {
		note := []rune(strings.Join(strings.Fields(m.Note), " "))
		if len(note) > noteWidth {
			note = append(note[:noteWidth-1], '…')
		}
		t.add(m.Seq, m.ID, m.Topic, m.Group, m.State, m.Stage, int64(m.Attempt), m.Added.Format(time.RFC3339), string(note))
	}
	var b strings.Builder
	t.print(&b)
	return b.String()
}

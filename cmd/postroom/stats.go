package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/box"
)

type statsCommand struct {
	database `embed:""`
	Consumer string `placeholder:"NAME" help:"Only this consumer. Default: all."`
	JSON     bool   `name:"json" help:"Print JSON."`
}

// Help gives the examples and says what the numbers are.
func (*statsCommand) Help() string {
	return `Examples:

  postroom stats --db sqlite:box.db
  postroom stats --consumer orders --json | jq '.oldest_waiting_seconds'

Nothing here reads the history. Messages are counted in the table of work, which
holds only what is not done. Totals are running sums since the tables were
created; each process adds to them every few seconds. Rows marked ~ are the
database's estimate.

Stages: ready and suspect can be claimed; scheduled and deferred are due or to be
retried later; arrived and queued wait in their group; leased is being worked on;
parked waits for a paused topic; idle has no topic; dead waits for an operator.`
}

// statsResult is the output of stats as JSON.
type statsResult struct {
	Database string      `json:"database"`
	Now      time.Time   `json:"now"`
	Live     []liveStat  `json:"live"`
	Totals   []totalStat `json:"totals"`
	// OldestWaiting is null when nothing could run now.
	OldestWaiting        *time.Time  `json:"oldest_waiting"`
	OldestWaitingSeconds float64     `json:"oldest_waiting_seconds"`
	Tables               []tableStat `json:"tables"`
}

type liveStat struct {
	Consumer string `json:"consumer"`
	Topic    string `json:"topic"`
	State    string `json:"state"`
	Stage    string `json:"stage"`
	Messages int64  `json:"messages"`
}

type totalStat struct {
	Consumer string `json:"consumer"`
	Topic    string `json:"topic"`
	// Counts has all names of countNames, and those that a newer program wrote.
	Counts map[string]int64 `json:"counts"`
}

type tableStat struct {
	Table     string `json:"table"`
	Rows      int64  `json:"rows"`
	Estimated bool   `json:"rows_estimated"`
	Bytes     int64  `json:"bytes"`
}

var countNames = []string{
	box.CountAccepted, box.CountDuplicate, box.CountReplaced, box.CountConflict, box.CountDone,
	box.CountDead, box.CountLost, box.CountUnhandled, box.CountSuperseded,
}

// Run prints the overview.
func (c *statsCommand) Run(ctx context.Context, term *terminal) error {
	store, err := c.open(ctx, false)
	if err != nil {
		return err
	}
	defer store.close()
	if err := store.Check(ctx); err != nil {
		return err
	}
	stats, err := store.Stats(ctx, c.Consumer)
	if err != nil {
		return err
	}
	res := summarise(stats)
	res.Database = store.label
	if c.JSON {
		return printJSON(term.out, res)
	}
	var b strings.Builder
	res.print(&b)
	return term.print(b.String())
}

func summarise(s *box.Stats) *statsResult {
	res := &statsResult{Now: s.Now.UTC(), Live: []liveStat{}, Totals: []totalStat{}, Tables: []tableStat{}}
	for _, l := range s.Live {
		res.Live = append(res.Live, liveStat{l.Consumer, l.Topic, l.Stage.State().String(), l.Stage.String(), l.N})
	}
	for _, c := range s.Totals {
		last := len(res.Totals) - 1
		if last < 0 || res.Totals[last].Consumer != c.Consumer || res.Totals[last].Topic != c.Topic {
			counts := map[string]int64{}
			for _, name := range countNames {
				counts[name] = 0
			}
			res.Totals = append(res.Totals, totalStat{c.Consumer, c.Topic, counts})
			last++
		}
		res.Totals[last].Counts[c.Name] += c.N
	}
	if !s.OldestWaiting.IsZero() {
		since := s.OldestWaiting.UTC()
		res.OldestWaiting = &since
		res.OldestWaitingSeconds = max(s.Now.Sub(since), 0).Seconds()
	}
	for _, t := range s.Tables {
		res.Tables = append(res.Tables, tableStat{t.Table, t.Rows, t.Estimated, t.Bytes})
	}
	return res
}

func (r *statsResult) print(b *strings.Builder) {
	fmt.Fprintf(b, "%s at %s\n\n", r.Database, r.Now.Format(time.RFC3339))
	if len(r.Live) == 0 {
		fmt.Fprintln(b, "No message waits, runs or is dead.")
	} else {
		live := table{header: []string{"CONSUMER", "TOPIC", "STATE", "STAGE", "MESSAGES"}}
		for _, l := range r.Live {
			live.add(l.Consumer, l.Topic, l.State, l.Stage, l.Messages)
		}
		live.print(b)
	}
	if r.OldestWaiting != nil {
		waited := time.Duration(r.OldestWaitingSeconds * float64(time.Second)).Round(time.Second)
		fmt.Fprintf(b, "Oldest waiting: %s, since %s\n", waited, r.OldestWaiting.Format(time.RFC3339))
	}
	b.WriteByte('\n')
	if len(r.Totals) > 0 {
		r.totals().print(b)
		b.WriteByte('\n')
	}
	sizes := table{header: []string{"TABLE", "ROWS", "SIZE"}}
	for _, t := range r.Tables {
		var rows any = t.Rows
		if t.Estimated {
			rows = estimate(t.Rows)
		}
		sizes.add(t.Table, rows, size(t.Bytes))
	}
	sizes.print(b)
}

// totals has a row per consumer and topic, and the sum of all.
func (r *statsResult) totals() *table {
	names := slices.Clone(countNames)
	sum := map[string]int64{}
	for _, t := range r.Totals {
		for _, name := range slices.Sorted(maps.Keys(t.Counts)) {
			sum[name] += t.Counts[name]
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	tbl := &table{header: append([]string{"CONSUMER", "TOPIC"}, headings(names)...)}
	row := func(consumer, topic string, counts map[string]int64) {
		cells := []any{consumer, topic}
		for _, name := range names {
			cells = append(cells, counts[name])
		}
		tbl.add(cells...)
	}
	for _, t := range r.Totals {
		row(t.Consumer, t.Topic, t.Counts)
	}
	if len(r.Totals) > 1 {
		row("all", "all", sum)
	}
	return tbl
}

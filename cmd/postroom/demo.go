package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/cmd/postroom/demo"
	"github.com/postroom/postroom/sqlstore/postgres"
)

type demoCommand struct {
	URL    string `name:"db" placeholder:"URL" help:"Play in this database instead of a temporary SQLite file. The tables stay."`
	Schema string `placeholder:"NAME" help:"Database schema of the tables; on MySQL and MariaDB a database. Default: the connection's own. SQLite has none."`
	Prefix string `placeholder:"NAME" default:"postroom_demo" help:"What the name of each table begins with. Default: ${default}."`

	Messages int           `default:"1200" placeholder:"N" help:"Different messages to send. Default: ${default}."`
	Senders  int           `default:"3" placeholder:"N" help:"Sending processes. Default: ${default}."`
	Workers  int           `default:"3" placeholder:"N" help:"Working processes. Default: ${default}."`
	Chaos    time.Duration `default:"14s" placeholder:"TIME" help:"How long things go wrong. Default: ${default}; after that the rest is worked off in peace."`
	Lease    time.Duration `default:"2s" placeholder:"TIME" help:"Lease of a worker on a message. Default: ${default}, far too short for real work."`

	Duplicates float64 `default:"0.35" placeholder:"RATE" help:"Chance of one more delivery after each delivery, below 1. Default: ${default}."`
	Fail       float64 `default:"0.08" placeholder:"RATE" help:"Chance that a run of the handler fails. Default: ${default}."`
	Panic      float64 `default:"0.03" placeholder:"RATE" help:"Chance that it panics. Default: ${default}."`
	Hang       float64 `default:"0.004" placeholder:"RATE" help:"Chance that it hangs until its time is up. Default: ${default}."`
	Malformed  float64 `default:"0.01" placeholder:"RATE" help:"Share of messages that the handler refuses for good. Default: ${default}."`
	Poison     int     `default:"1" placeholder:"N" help:"Messages that kill each process that handles them. Default: ${default}."`

	KillEvery  time.Duration `default:"2500ms" placeholder:"TIME" help:"Mean time between two workers killed. Default: ${default}; 0: never."`
	CrashEvery time.Duration `default:"2s" placeholder:"TIME" help:"Mean time between two senders killed. Default: ${default}; 0: never."`
	StallEvery time.Duration `default:"3s" placeholder:"TIME" help:"Mean time between two workers stopped for longer than their leases. Default: ${default}; 0: never."`

	SuspendEvery time.Duration `default:"1s" placeholder:"TIME" help:"Mean time between two moments when all leases end for the database, but not by the clocks of the workers. Default: ${default}; 0: never."`

	Seed uint64 `placeholder:"N" help:"Repeat the messages, deliveries and faults of an earlier run. Default: a new one."`
	Keep bool   `help:"Keep the SQLite file and the log of the processes, and say where they are."`
	JSON bool   `name:"json" help:"Print the ledger as JSON."`
}

// Help says what is shown.
func (*demoCommand) Help() string {
	return `Examples:

  postroom demo
  postroom demo --messages 5000 --chaos 1m --seed 7
  postroom demo --db postgres://app@localhost/scratch

Senders duplicate, reorder and crash. The handler writes one row per message, in
the transaction in which the message becomes done, into a table without a unique
key; then it fails, panics, hangs, or its process is killed. Processes are also
killed and stalled from outside. In the end the rows are counted: as many as there
were messages, each written under the lease that the message was done with.

It exits with 1 if that is not so, or if too little went wrong to show it.`
}

// Run plays, or is one of the processes of a demo.
func (c *demoCommand) Run(ctx context.Context, term *terminal) error {
	if task := os.Getenv(demo.Variable); task != "" {
		return demo.Child(ctx, task, func(ctx context.Context) (*demo.Store, error) { return c.open(ctx, os.Getenv(demoURL)) })
	}
	if err := c.check(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "postroom-demo-")
	if err != nil {
		return err
	}
	if !c.Keep {
		defer func() { _ = os.RemoveAll(dir) }()
	}
	url := c.URL
	if url == "" {
		url = "sqlite:" + filepath.Join(dir, "demo.db")
	}
	store, err := c.open(ctx, url)
	if err != nil {
		return err
	}
	defer store.Close()
	if err := c.prepare(ctx, store); err != nil {
		return err
	}
	options, err := c.options(store, url, filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	options.Progress, options.Live = term.err, term.live
	ledger, err := demo.Run(ctx, options)
	if c.Keep {
		term.say("postroom: kept %s and the log in %s\n", redact(url), dir)
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("stopped before the end")
	case err != nil:
		return err
	case c.JSON:
		err = printJSON(term.out, ledger)
	default:
		err = term.print(ledger.String())
	}
	if err == nil && !ledger.Balanced() {
		return errFound
	}
	return err
}

// demoURL tells the processes of a demo which database it is; in the
// environment, since it may hold a password.
const demoURL = "POSTROOM_DEMO_DB"

func (c *demoCommand) check() error {
	if c.Messages < 1 || c.Senders < 1 || c.Workers < 1 || c.Poison < 0 || c.Poison > c.Messages {
		return usagef("--messages, --senders and --workers must be positive, and --poison no more than the messages")
	}
	if c.Lease < 500*time.Millisecond || c.Chaos <= 0 {
		return usagef("--lease must be at least 500ms, and --chaos positive")
	}
	for flag, rate := range map[string]float64{
		"--duplicates": c.Duplicates, "--fail": c.Fail, "--panic": c.Panic, "--hang": c.Hang, "--malformed": c.Malformed,
	} {
		if rate < 0 || rate >= 1 {
			return usagef("%s %g: a rate is at least 0 and below 1", flag, rate)
		}
	}
	return nil
}

func (c *demoCommand) open(ctx context.Context, url string) (*demo.Store, error) {
	d := database{URL: url, tableSet: tableSet{Schema: c.Schema, Prefix: c.Prefix}}
	o, err := d.open(ctx, true)
	if err != nil {
		return nil, err
	}
	// The store has checked both names.
	table := func(name string) string {
		name = o.dialect.Quote(c.Prefix + "_" + name)
		if c.Schema != "" {
			name = o.dialect.Quote(c.Schema) + "." + name
		}
		return name
	}
	longAgo := "0"
	if o.dialect == postgres.Dialect {
		longAgo = "'epoch', place = 9" // where leases are looked for by themselves
	}
	suspend := "UPDATE " + table("work") + " SET lease_until = " + longAgo + " WHERE consumer = $1 AND stage = 9"
	store := &demo.Store{
		Store: o.Store, DB: o.db, Marks: o.dialect.Fill != nil, Effects: table("effect"), Close: o.close,
	}
	store.Suspend = func(ctx context.Context, consumer string) error {
		_, err := o.db.ExecContext(ctx, store.SQL(suspend), consumer)
		return err
	}
	return store, nil
}

func (c *demoCommand) prepare(ctx context.Context, store *demo.Store) error {
	if err := store.Migrate(ctx); err != nil {
		return err
	}
	_, err := store.DB.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+store.Effects+
		" (consumer TEXT NOT NULL, source TEXT NOT NULL, id TEXT NOT NULL, fence BIGINT NOT NULL, process BIGINT NOT NULL)")
	if err != nil {
		return fmt.Errorf("create the table of effects: %w", err)
	}
	return nil
}

func (c *demoCommand) options(store *demo.Store, url, log string) (demo.Options, error) {
	self, err := os.Executable()
	if err != nil {
		return demo.Options{}, err
	}
	if c.Seed == 0 {
		c.Seed = uint64(rand.Uint32()) + 1 //nolint:gosec // it only has to differ
	}
	args := []string{"demo", "--prefix", c.Prefix}
	if c.Schema != "" {
		args = append(args, "--schema", c.Schema)
	}
	return demo.Options{
		Plan: demo.Plan{
			Consumer: "demo-" + strings.ReplaceAll(postroom.NewID(), "-", ""), Seed: c.Seed,
			Messages: c.Messages, Senders: c.Senders, Span: c.Chaos * 8 / 10, Duplicates: c.Duplicates,
			Fail: c.Fail, Panic: c.Panic, Hang: c.Hang, Malformed: c.Malformed, Poison: c.Poison, Lease: c.Lease,
		},
		Workers: c.Workers, Chaos: c.Chaos,
		KillEvery: c.KillEvery, CrashEvery: c.CrashEvery, StallEvery: c.StallEvery, SuspendEvery: c.SuspendEvery,
		Store: store, Log: log,
		Command: func(ctx context.Context, variable string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, self, args...) //nolint:gosec // this program itself
			cmd.Env = append(os.Environ(), variable, demoURL+"="+url)
			return cmd
		},
	}, nil
}

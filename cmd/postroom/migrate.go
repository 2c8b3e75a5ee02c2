package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/postroom/postroom"
)

type migrateCommand struct {
	database `embed:""`
	Check    bool `aliases:"dry-run" help:"Change nothing; exit with 1 if the tables are missing or out of date. Also --dry-run."`
	JSON     bool `name:"json" help:"Print JSON."`
}

// Help gives the examples.
func (*migrateCommand) Help() string {
	return `Examples:

  postroom migrate --db sqlite:box.db
  POSTROOM_DB=postgres://owner:secret@db/shop postroom migrate --schema orders
  postroom migrate --check || echo "run postroom migrate first"

Migrations only go forward. Several processes may migrate at once: one does the
work, the others wait for it. To run the SQL yourself, see 'postroom schema'.`
}

// migrateResult is the output of migrate as JSON.
type migrateResult struct {
	Database string `json:"database"`
	// From is the version that was found; 0: no tables.
	From int `json:"from"`
	// To is the version that this program needs, or a newer one that was found.
	To int `json:"to"`
	// UpToDate: the tables are now as this program needs them.
	UpToDate bool `json:"up_to_date"`
}

// Run migrates, or checks.
func (c *migrateCommand) Run(ctx context.Context, term *terminal) error {
	store, err := c.open(ctx, !c.Check)
	if err != nil {
		return err
	}
	defer store.close()
	have, want, err := store.Version(ctx)
	if err != nil && !errors.Is(err, postroom.ErrNoSchema) {
		return err
	}
	res := migrateResult{Database: store.label, From: have, To: max(have, want), UpToDate: have >= want}
	if !res.UpToDate && !c.Check {
		if err := store.Migrate(ctx); err != nil {
			return err
		}
		res.UpToDate = true
	}
	if err := c.print(term, res, want); err != nil {
		return err
	}
	if !res.UpToDate {
		return errFound
	}
	return nil
}

func (c *migrateCommand) print(term *terminal, res migrateResult, want int) error {
	if c.JSON {
		return printJSON(term.out, res)
	}
	text := fmt.Sprintf("version %d → %d", res.From, res.To)
	switch {
	case !res.UpToDate:
		text = fmt.Sprintf("out of date, version %d → %d; run 'postroom migrate'", res.From, res.To)
	case res.From > want:
		text = fmt.Sprintf("version %d, newer than the %d of this program", res.From, want)
	case res.From == res.To:
		text = fmt.Sprintf("up to date, version %d", res.To)
	}
	return term.print(res.Database + ": " + text + "\n")
}

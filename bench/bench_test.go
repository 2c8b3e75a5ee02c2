package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain lets the smoke runs start this program as a worker.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workerCommand {
		if err := asWorker(context.Background(), os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestEveryRowCanBeMeasuredOnSQLite(t *testing.T) { smoke(t, "SQLite") }

func TestEveryRowCanBeMeasuredOnMariaDB(t *testing.T) { smoke(t, "MariaDB") }

func TestEveryRowCanBeMeasuredOnPostgreSQL(t *testing.T) { smoke(t, "PostgreSQL") }

// smoke measures nothing worth reading: it proves that every row can be.
func smoke(t *testing.T, database string) {
	t.Helper()
	if os.Getenv("POSTROOM_REQUIRE_SERVICES") == "" {
		t.Skip("takes a while: make test runs it")
	}
	size, err := sizesOf("smoke", 0)
	if err != nil {
		t.Fatal(err)
	}
	// The defaults of River differ in patience only.
	r, err := newRun(size, "", "Postroom|bare|tuned|goqite", database, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	rep, err := r.all(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, d := range databases {
		if !strings.HasPrefix(d.name, database) {
			continue
		}
		for _, sc := range d.rows(size) {
			rows += len(sc.figures)
		}
	}
	if len(rep.results) != rows {
		t.Errorf("the report has %d rows, want %d", len(rep.results), rows)
	}
	for _, row := range rep.results {
		for name, v := range row.values {
			if !(v > 0) && !math.IsNaN(v) {
				t.Errorf("%s of %s is %v", row.name, name, v)
			}
		}
		if math.IsNaN(value(row, ours)) {
			t.Errorf("%s was not measured", row.name)
		}
	}
	for _, d := range databases {
		head := "| " + d.name + " | unit |"
		if !strings.HasPrefix(d.name, database) {
			continue
		}
		if table := rep.markdown(); !strings.Contains(table, head) {
			t.Errorf("the report lacks the table %q:\n%s", head, table)
		}
	}
	if chart := rep.svg(); !strings.HasPrefix(chart, "<svg") || !strings.Contains(chart, "<rect") {
		t.Errorf("the chart has no bars:\n%s", chart)
	}
}

func TestAGoalIsReachedOrNot(t *testing.T) {
	r := result{values: map[string]float64{ours: 600, "bare SQL": 400, "River tuned": 100, "River default": 50}}
	for _, c := range []struct {
		goal goal
		want string
	}{
		{times(6, "River"), "≥ 6× River: reached (6)"},
		{times(2, "bare SQL"), "≥ 2× bare SQL: **not reached** (1.50)"},
		{times(0.75, "bare SQL"), "≥ 75 % of bare SQL: reached (1.50)"},
		{times(1, "goqite"), "≥ 1× goqite: not measured"},
		{atMost(500, "B"), "≤ 500 B: **not reached** (600)"},
	} {
		if got := c.goal.verdict(r, nil, false); got != c.want {
			t.Errorf("the verdict is %q, want %q", got, c.want)
		}
	}
}

func TestAHintReachesNoGoal(t *testing.T) {
	r := result{values: map[string]float64{ours: 600, "bare SQL": 400}}
	if got, want := times(2, "bare SQL").verdict(r, nil, true), "≥ 2× bare SQL: hint 1.50"; got != want {
		t.Errorf("the verdict is %q, want %q", got, want)
	}
}

func TestTheTableReplacesTheLastOneOnThePage(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("before\n"+pageBegin+"old\n"+pageEnd+"\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := insertIf(page, "new\n"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	if want := "before\n" + pageBegin + "new\n" + pageEnd + "\nafter\n"; err != nil || string(got) != want {
		t.Errorf("the page is %q, want %q (%v)", got, want, err)
	}
	if err := insertIf(os.DevNull, "new\n"); err == nil {
		t.Error("a page without markers was taken")
	}
}

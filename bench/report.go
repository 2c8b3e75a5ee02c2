package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// A report is what a run found.
type report struct {
	size    sizes
	at      time.Time
	took    time.Duration
	abouts  []string
	results []result
}

// columns are the systems of a database, Postroom first, and those that it is
// compared with.
var columns = map[string][]string{
	"PostgreSQL":         {ours, "bare SQL", "River tuned", "River default"},
	"PostgreSQL, outbox": {ours, "bare SQL", "Watermill tuned", "Watermill default"},
	"MariaDB":            {ours, "bare SQL"},
	"SQLite":             {ours, "bare SQL", "goqite"},
	"SQLite, outbox":     {ours, "bare SQL"},
}

// peer is whom the last ratio compares with, if there is one.
var peer = map[string]string{"PostgreSQL": "River", "PostgreSQL, outbox": "Watermill", "SQLite": "goqite"}

func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "The %s form, medians of interleaved rounds (%s), %s, took %s.\n", r.size.form, r.size.roundsText(), r.at.UTC().Format("2 January 2006 15:04 UTC"), r.took.Round(time.Second))
	if r.size.form != "full" {
		b.WriteString("**Figures of this form are hints**: each is measured once, for tenths of a second.\nDo not compare them with goals; `make bench-full` does.\n")
	}
	fmt.Fprintf(&b, "\n- %s\n- %s\n", machine(), strings.Join(versions(), ", "))
	for _, about := range r.abouts {
		fmt.Fprintf(&b, "- %s\n", about)
	}
	b.WriteString("\n× says how many times better Postroom is, whether more or less is better; below 1 it is worse.\n")
	b.WriteString("– stands where a system has nothing like it, and below *River default* where its settings make no difference.\n")
	for _, d := range databases {
		rows := r.of(d.name)
		if len(rows) == 0 {
			continue
		}
		names, others := columns[d.name], []string{"bare SQL"}
		if p := peer[d.name]; p != "" {
			others = append(others, p)
		}
		fmt.Fprintf(&b, "\n| %s | unit | %s | × %s | goals |\n|---|---|%s---|\n", d.name, strings.Join(names, " | "), strings.Join(others, " | × "), strings.Repeat("---:|", len(names)+len(others)))
		for _, row := range rows {
			fmt.Fprintf(&b, "| %s | %s |", row.name, row.unit)
			for _, name := range names {
				fmt.Fprintf(&b, " %s |", number(value(row, name)))
			}
			for _, other := range others {
				fmt.Fprintf(&b, " %s |", ratio(row, other))
			}
			fmt.Fprintf(&b, " %s |\n", r.goals(row))
		}
	}
	return b.String()
}

func (r *report) of(database string) []result {
	return slices.DeleteFunc(slices.Clone(r.results), func(row result) bool { return row.database != database })
}

func (r *report) goals(row result) string {
	var verdicts []string
	for _, g := range row.goals {
		verdicts = append(verdicts, g.verdict(row, r.results, r.size.form != "full"))
	}
	return strings.Join(verdicts, "; ")
}

func ratio(row result, other string) string {
	if row.unit == share {
		return ""
	}
	q := row.values[ours] / best(row, other)
	if row.lower {
		q = 1 / q
	}
	return number(q)
}

// number writes three digits that matter, or all of a large one.
func number(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case math.Abs(v) >= 100:
		return count(int(math.Round(v)))
	case math.Abs(v) >= 10:
		return fmt.Sprintf("%.1f", v)
	case v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

func machine() string {
	model := runtime.GOARCH
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range bytes.Lines(info) {
			if name, found := strings.CutPrefix(string(line), "model name\t: "); found {
				model = strings.TrimSpace(name)
				break
			}
		}
	}
	return fmt.Sprintf("%d × %s, %s; load average when it ended: %s", runtime.NumCPU(), model, runtime.GOOS, load())
}

func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

// versions names what was built into this program.
func versions() []string {
	found := []string{runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return found
	}
	for _, module := range info.Deps {
		for _, name := range []string{"jackc/pgx/v5", "go-sql-driver/mysql", "riverqueue/river", "ThreeDotsLabs/watermill", "watermill-sql/v3", "dev/goqite", "org/sqlite"} {
			if strings.HasSuffix(module.Path, name) {
				found = append(found, module.Path+" "+module.Version)
			}
		}
	}
	return found
}

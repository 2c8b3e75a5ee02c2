// Command bench measures Postroom beside bare SQL, River, Watermill and goqite, in
// one run on one machine, and prints one table.
//
//	bench [flags]
//
// PostgreSQL and MariaDB are the servers that POSTROOM_TEST_POSTGRES_DSN and
// POSTROOM_TEST_MARIADB_DSN name; make bench starts them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"slices"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(os.Args) > 1 && os.Args[1] == workerCommand {
		err = asWorker(ctx, os.Args[2:])
	} else {
		err = command(ctx, os.Args[1:])
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	form := flags.String("form", "quick", "sizes: quick, full or smoke")
	rounds := flags.Int("rounds", 0, "how often each figure is measured (default: by the form)")
	only := flags.String("only", "", "measure the rows whose name matches this regular expression")
	of := flags.String("of", "", "measure the systems whose name matches this regular expression")
	databases := flags.String("databases", "PostgreSQL|MariaDB|SQLite", "measure the databases that match this regular expression")
	out := flags.String("out", "", "write the table into this file, too")
	page := flags.String("page", "", "put the table between the markers of this page")
	chart := flags.String("chart", "", "draw the chart into this file")
	profile := flags.String("cpuprofile", "", "write a profile of this process into this file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	size, err := sizesOf(*form, *rounds)
	if err != nil {
		return err
	}
	if *profile != "" {
		file, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	r, err := newRun(size, *only, *of, *databases, os.Stderr)
	if err != nil {
		return err
	}
	rep, err := r.all(ctx)
	text := rep.markdown()
	fmt.Print(text)
	if err != nil {
		// What was measured before is worth reading, but not worth keeping.
		return err
	}
	return errors.Join(
		writeIf(*out, text),
		insertIf(*page, picture(*chart)+text),
		writeIf(*chart, rep.svg()),
	)
}

// picture shows the chart on the page, which lies in the same folder.
func picture(chart string) string {
	if chart == "" {
		return ""
	}
	return fmt.Sprintf("![Messages per second, by row and system](%s)\n\n", filepath.Base(chart))
}

func sizesOf(form string, rounds int) (sizes, error) {
	i := slices.IndexFunc(forms, func(s sizes) bool { return s.form == form })
	if i < 0 {
		return sizes{}, fmt.Errorf("form %q: use quick, full or smoke", form)
	}
	size := forms[i]
	if rounds > 0 {
		size.rounds, size.goalRounds = rounds, rounds
	}
	return size, nil
}

// A benchRun goes through the databases, systems and rows that were asked for.
type benchRun struct {
	size                sizes
	only, of, databases *regexp.Regexp
	log                 io.Writer
}

func newRun(size sizes, only, of, databases string, log io.Writer) (*benchRun, error) {
	r := &benchRun{size: size, log: log}
	for _, p := range []struct {
		into **regexp.Regexp
		text string
	}{{&r.only, only}, {&r.of, of}, {&r.databases, databases}} {
		compiled, err := regexp.Compile(p.text)
		if err != nil {
			return nil, err
		}
		*p.into = compiled
	}
	return r, nil
}

func (r *benchRun) all(ctx context.Context) (*report, error) {
	rep := &report{size: r.size, at: time.Now()}
	for _, database := range databases {
		if !r.databases.MatchString(database.name) {
			continue
		}
		if database.about != nil {
			about, err := database.about(ctx, os.Getenv(database.server))
			if err != nil && (r.size.form != "smoke" || !errors.Is(err, errForgetful)) {
				return rep, err
			}
			rep.abouts = append(rep.abouts, about)
		}
		begin := time.Now()
		results, err := r.one(ctx, database)
		_, _ = fmt.Fprintf(r.log, "%s %s: %.1f s in all\n", time.Now().Format(time.TimeOnly), database.name, time.Since(begin).Seconds())
		rep.results = append(rep.results, results...)
		rep.took = time.Since(rep.at)
		if err != nil {
			return rep, fmt.Errorf("%s: %w", database.name, err)
		}
	}
	return rep, nil
}

func (r *benchRun) one(ctx context.Context, d database) (results []result, err error) {
	var systems []system
	defer func() {
		for _, s := range systems {
			// The run may have been interrupted: what it made goes all the same.
			err = errors.Join(err, s.close(context.WithoutCancel(ctx)))
		}
	}()
	for _, open := range d.systems {
		s, err := open(ctx, os.Getenv(d.server))
		if err != nil {
			return nil, err
		}
		systems = append(systems, s)
	}
	measured := slices.DeleteFunc(slices.Clone(systems), func(s system) bool { return !r.of.MatchString(s.name()) })
	for _, sc := range d.rows(r.size) {
		if !slices.ContainsFunc(sc.figures, func(f figure) bool { return r.only.MatchString(f.name) }) {
			continue
		}
		some, err := run(ctx, r.log, d.name, sc, measured)
		if err != nil {
			return results, err
		}
		results = append(results, some...)
	}
	return results, nil
}

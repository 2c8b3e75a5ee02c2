// Command postroom looks after the tables of a box: it creates them, cleans
// them up and shows what is in them.
//
// It exits with 0 when all went well, 1 when something failed or was found
// wanting, and 2 when it was called wrongly.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/mattn/go-isatty"
)

// What the program exits with.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

// commands is the command line. Each command is a file of its own.
type commands struct {
	Schema  schemaCommand  `cmd:"" help:"Print the SQL that creates the tables, or that lets a role use them, without connecting."`
	Migrate migrateCommand `cmd:"" help:"Create the tables or bring them up to date."`
	Cleanup cleanupCommand `cmd:"" help:"Remove what is past its retention."`
	Stats   statsCommand   `cmd:"" help:"Show what waits, what happened, and how large the tables are."`
	Outbox  outboxCommand  `cmd:"" help:"Look after what leaves: stats, list, rewind."`
	Doctor  doctorCommand  `cmd:"" help:"Look for what endangers messages: settings, tables, grants, clocks; and say how to mend it."`
	Demo    demoCommand    `cmd:"" help:"Watch senders and workers fail in every way, and the ledger balance."`
	Version versionCommand `cmd:"" help:"Print the version of this program."`
}

const description = `Postroom keeps inboxes and outboxes in the database that a program already has.
This command looks after their tables.

Databases are named by URL: ${databases}.
Give it with --db, or in POSTROOM_DB, which keeps passwords out of process lists.

Exit status: 0 all went well; 1 it failed, or a check found something; 2 wrong usage.`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks for an orderly end, the second is not caught.
	context.AfterFunc(ctx, stop)
	term := &terminal{out: os.Stdout, err: os.Stderr, live: isatty.IsTerminal(os.Stderr.Fd())}
	os.Exit(run(ctx, term, os.Args[1:]))
}

// terminal is where a command writes: results to out, all else to err.
type terminal struct {
	out, err io.Writer
	// live: err is a terminal, on which a line can be written over.
	live bool
}

// print writes a result. A pipe that broke is an error: whoever reads the result
// does not have all of it.
func (t *terminal) print(result string) error {
	_, err := io.WriteString(t.out, result)
	return err
}

// say writes what is not the result.
func (t *terminal) say(format string, args ...any) { _, _ = fmt.Fprintf(t.err, format, args...) }

// usageError says that the command line can't be used.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exited carries the status of kong's own exits, which are those after help.
type exited int

// run runs the program and gives its exit status.
func run(ctx context.Context, term *terminal, args []string) (status int) {
	defer func() {
		if v := recover(); v != nil {
			code, ok := v.(exited)
			if !ok {
				panic(v)
			}
			status = int(code)
		}
	}()
	var cmds commands
	parser := kong.Must(
		&cmds,
		kong.Name("postroom"), kong.Description(description), kong.Writers(term.out, term.err),
		kong.Exit(func(code int) { panic(exited(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 96}),
		kong.Vars{"databases": examples(), "dialects": strings.Join(dialectNames(), ",")},
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(term),
	)
	parsed, err := parser.Parse(args)
	if err != nil {
		err = usageError{err}
	} else {
		err = parsed.Run()
	}
	return term.report(err)
}

// report prints an error and gives the exit status for it.
func (t *terminal) report(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errFound):
		// The result that was printed says it.
		return exitFailure
	case errors.As(err, &usage):
		t.say("postroom: %s\nRun 'postroom --help', or 'postroom COMMAND --help'.\n", redact(err.Error()))
		return exitUsage
	default:
		t.say("postroom: %s\n", redact(err.Error()))
		return exitFailure
	}
}

// errFound ends a check whose printed result is the reason to exit with 1.
var errFound = errors.New("the check found something")

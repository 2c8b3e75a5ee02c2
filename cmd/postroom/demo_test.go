package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/postroom/postroom/cmd/postroom/demo"
)

// TestMain lets this test binary be the processes of a demo.
func TestMain(m *testing.M) {
	if os.Getenv(demo.Variable) != "" {
		os.Exit(run(context.Background(), &terminal{out: os.Stdout, err: os.Stderr}, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// A short demo with all its faults, on real processes.
func TestTheDemoBalances(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	onEachDatabase(t, func(t *testing.T, db string) {
		if strings.HasPrefix(db, "sqlite:") {
			db = "" // its own file
		}
		var stderr bytes.Buffer
		got := callWith(t.Context(), &stderr, "demo", "--json", "--db", db, "--messages", "150", "--chaos", "3s", "--lease", "600ms",
			"--kill-every", "700ms", "--crash-every", "700ms", "--stall-every", "1s", "--suspend-every", "300ms", "--fail", "0.2")
		if got.status != exitOK {
			t.Fatalf("exit status %d\n%s%s", got.status, got.out, got.err)
		}
		var l demo.Ledger
		if err := json.Unmarshal([]byte(got.out), &l); err != nil {
			t.Fatal(err)
		}
		if l.Effects != 150 || l.Unique != 150 || l.LeasesLost == 0 || l.Sent < l.Acknowledged || l.Acknowledged != l.Accepted+l.Duplicates {
			t.Errorf("%s", got.out)
		}
		if !strings.Contains(got.err, "effects of 150 messages") {
			t.Errorf("no plain progress: %q", got.err)
		}
	})
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		if strings.HasPrefix(entry.Name(), "postroom-demo-") {
			t.Errorf("%s was left behind", entry.Name())
		}
	}
}

func TestTheDemoRefusesWhatItCannotPlay(t *testing.T) {
	for _, args := range [][]string{
		{"--messages", "0"}, {"--workers", "0"}, {"--poison", "2000"}, {"--lease", "1ms"}, {"--duplicates", "1"}, {"--db", "mysql://x"}, {"--db", "oracle://x"},
	} {
		if got := call(t, append([]string{"demo"}, args...)...); got.status != exitUsage {
			t.Errorf("%v: exit status %d, %s", args, got.status, got.err)
		}
	}
}

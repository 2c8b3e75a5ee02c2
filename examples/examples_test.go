package examples_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// outputs are what the programs print. Each exits with 1 when its claim does not
// hold. The quickstart runs twice, because it keeps what it wrote.
var outputs = map[string][]string{
	"quickstart": {`
received: accepted
received: duplicate
payments: 1
`, `
received: duplicate
received: duplicate
payments: 1
`},
	"webhook-quickstart": {`
the provider sends each event twice, a stranger tries too:
  evt_1: 200 accepted
  evt_1: 200 duplicate
  evt_2: 200 accepted
  evt_2: 200 duplicate
  evt_3: 200 accepted
  evt_3: 200 duplicate
  evt_9: 401 signature is wrong
  evt_1: 401 signature is too old
the worker handles what is in the inbox
the provider missed an answer:
  evt_1: 200 already processed
charged: evt_1 1000, evt_2 250
`},
	"once-in-your-transaction": {`
20 transfers, 3 copies of each
booked 20, skipped as duplicates 40, rolled back and tried again 10
the ledger has 20 bookings over 21000 cents
`},
	"modular-monolith": {`
60 orders, each placed twice, in a shop that is killed 5 times
orders placed: 60
orders charged once: 60
orders shipped once: 60
charges and parcels without an order: 0
messages left behind: 0
`},
	"ordered-groups": {`
ann: 1 2 3 4 5
bob: 1 2 3 4 5
eve: 1 2 3 4 5
bob-2 failed until ann and eve were through: its account waited for it, theirs did not
`},
}

func TestEachExampleKeepsItsClaimAndPrintsWhatTheDocumentsSay(t *testing.T) {
	mains, err := filepath.Glob("*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if len(mains) != len(outputs) {
		t.Errorf("there are %d programs, and outputs of %d", len(mains), len(outputs))
	}
	for _, main := range mains {
		name := filepath.Dir(main)
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			program := filepath.Join(dir, "program")
			if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./"+name).CombinedOutput(); err != nil {
				t.Fatalf("build: %v\n%s", err, out)
			}
			for _, want := range outputs[name] {
				cmd := exec.CommandContext(t.Context(), program)
				cmd.Dir = dir
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				got, err := cmd.Output()
				var exit *exec.ExitError
				if err != nil && !errors.As(err, &exit) {
					t.Fatal(err)
				}
				if got, want := string(got), strings.TrimPrefix(want, "\n"); err != nil || got != want {
					t.Errorf("exit: %v\n--- printed\n%s--- want\n%s--- log\n%s", err, got, want, stderr.String())
				}
			}
		})
	}
}

func TestTheReadmeShowsTheQuickstartAsItIs(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("quickstart/main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(program), "package main")
	if !strings.Contains(string(readme), "```go\npackage main"+code+"```\n") {
		t.Error("README.md does not show examples/quickstart/main.go from its package clause on; copy it there")
	}
}

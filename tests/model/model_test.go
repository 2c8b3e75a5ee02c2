package model

import (
	"flag"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/pgxstore"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/tests/services"
	"github.com/postroom/postroom/tests/stores"
)

// opened are the stores that are compared with the model. percent is the share
// of the checks that a store gets: a server takes longer for each.
var opened = []struct {
	name    string
	percent int
	open    func(t testing.TB) stores.Open
}{
	{"sqlite", 25, func(t testing.TB) stores.Open { return stores.SQLite(t, sqlstore.Options{}) }},
	{"postgres", 8, func(t testing.TB) stores.Open {
		return stores.Postgres(t, "pgx", services.Postgres(t), sqlstore.Options{})
	}},
	{"mariadb", 6, func(t testing.TB) stores.Open { return stores.MySQL(t, services.MariaDB(t), sqlstore.Options{}) }},
	{"sqlserver", 6, func(t testing.TB) stores.Open {
		return stores.SQLServer(t, services.SQLServer(t), sqlstore.Options{})
	}},
	{"pgx", 8, func(t testing.TB) stores.Open { return stores.Pgx(t, services.Postgres(t), pgxstore.Options{}) }},
}

// TestModel makes random calls. -rapid.checks says how many cases there are,
// -rapid.steps how long each is; make soak asks for many.
func TestModel(t *testing.T) {
	for _, s := range opened {
		t.Run(s.name, func(t *testing.T) {
			budget(t, s.percent)
			checks := 0 // rapid stops early when the test's time is up
			store := s.open(t)
			reached := map[string]int{}
			rapid.Check(t, func(rt *rapid.T) {
				store.Clear(t)
				p := newPair(rt, stores.Memory(t), store)
				p.reached = reached
				rt.Repeat(actions(p))
				checks++
			})
			enough(t, checks, reached)
		})
	}
}

// enough fails a run of some length that did not get everywhere: it would prove
// nothing.
func enough(t *testing.T, checks int, reached map[string]int) {
	t.Helper()
	t.Logf("%d checks reached %v", checks, reached)
	if checks < 150 || t.Failed() {
		return
	}
	for stage := postroom.StageSeen; stage <= postroom.StageParked; stage++ {
		if reached["stage "+stage.String()] == 0 {
			t.Errorf("%d checks never reached stage %v", checks, stage)
		}
	}
	for outcome := postroom.Accepted; outcome <= postroom.Dead; outcome++ {
		if reached["put "+outcome.String()+" <nil>"] == 0 {
			t.Errorf("%d checks never reached outcome %v", checks, outcome)
		}
	}
}

// budget gives a test its share of -rapid.checks.
func budget(t *testing.T, percent int) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	all := checks.Value.String()
	n, err := strconv.Atoi(all)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = checks.Value.Set(all) })
	n = max(1, n*percent/100)
	if testing.Short() {
		n = min(n, 8) // a first look; make test takes its time
	}
	if err := checks.Value.Set(strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
}

package main

import (
	"bufio"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/cmd/postroom/doctor"
)

// examine calls the doctor as a person does, and gives what it found.
func examine(t *testing.T, db string, args ...string) doctorResult {
	t.Helper()
	got := call(t, append([]string{"doctor", "--json", "--db", db}, args...)...)
	var res doctorResult
	if err := json.Unmarshal([]byte(got.out), &res); err != nil {
		t.Fatalf("%v: exit status %d, %s%s", err, got.status, got.out, got.err)
	}
	if res.Healthy != (got.status == exitOK) || got.status == exitUsage {
		t.Errorf("healthy: %t, exit status %d", res.Healthy, got.status)
	}
	return res
}

// examineWith lets a test change what no flag can.
func examineWith(t *testing.T, db string, change func(p *doctor.Patient)) doctorResult {
	t.Helper()
	c := doctorCommand{database: database{URL: db, tableSet: tableSet{Prefix: "postroom"}}, Connections: 13, Overdue: 15 * time.Minute}
	p, store, err := c.patient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer store.close()
	change(p)
	return doctorResult{Findings: doctor.Examine(t.Context(), p)}
}

// bad gives the findings that are not ok, of one check or of all.
func (r doctorResult) bad(check string) (bad []doctor.Finding) {
	for _, f := range r.Findings {
		if (check == "" || f.Check == check) && f.Severity != doctor.OK && f.Severity != doctor.Skip {
			bad = append(bad, f)
		}
	}
	return bad
}

// find fails the test unless there is a finding of that severity whose text has
// all of the words.
func (r doctorResult) find(t *testing.T, check string, severity doctor.Severity, words ...string) doctor.Finding {
	t.Helper()
	for _, f := range r.Findings {
		if f.Check == check && f.Severity == severity &&
			!slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(f.Seen+" "+f.Mend, w) }) {
			if severity != doctor.OK && severity != doctor.Skip && (f.Why == "" || f.Mend == "") {
				t.Errorf("%+v says not why, or not how to mend it", f)
			}
			return f
		}
	}
	t.Fatalf("no finding %s of %s with %q in %s", severity, check, words, r.text())
	return doctor.Finding{}
}

// An ailment is something wrong that a test brings about. The placeholders {app},
// {db} and {owner} stand for quoted names.
type ailment struct {
	name string
	// cause is run by an administrator.
	cause    []string
	check    string
	severity doctor.Severity
	words    []string
	// cure is run instead of what the doctor says, where that is no statement.
	cure []string
}

// suffer brings each ailment about, looks whether the doctor sees it, does what
// the doctor says, and looks whether it is gone.
func suffer(t *testing.T, admin *sql.DB, db string, names *strings.Replacer, ailments []ailment) {
	for _, a := range ailments {
		t.Run(a.name, func(t *testing.T) {
			if left := examine(t, db).bad(""); len(left) > 0 {
				t.Fatalf("ill before: %+v", left)
			}
			do := func(statements ...string) {
				t.Helper()
				for _, s := range statements {
					if _, err := admin.ExecContext(t.Context(), names.Replace(s)); err != nil {
						t.Fatalf("%s: %v", names.Replace(s), err)
					}
				}
			}
			do(a.cause...)
			words := make([]string, len(a.words))
			for i, w := range a.words {
				words[i] = names.Replace(w)
			}
			ill := examine(t, db)
			f := ill.find(t, a.check, a.severity, words...)
			if ill.Healthy != (len(ill.bad("")) == ill.Counts[doctor.Warn]) {
				t.Errorf("healthy: %t, %+v", ill.Healthy, ill.Counts)
			}
			if a.cure != nil {
				do(a.cure...)
				return
			}
			for _, f := range ill.bad(a.check) {
				for s := range strings.SplitSeq(f.Mend, "; ") {
					do(s)
				}
			}
			if left := examine(t, db).bad(""); len(left) > 0 {
				t.Errorf("after %q: %+v", f.Mend, left)
			}
		})
	}
}

// ownServer starts a server for one test, with settings that are the server's and
// not of one role.
func ownServer(t *testing.T, name string, args ...string) string {
	t.Helper()
	service(t, name) // skips where there is none
	if testing.Short() {
		t.Skip("starts a server of its own")
	}
	variable := "POSTROOM_TEST_" + name + "_DSN"
	cmd := exec.Command(filepath.Join("..", "..", "scripts", "services"), "run", strings.ToLower(name), "--", //nolint:gosec // of this repository
		"sh", "-c", `printf '%s\n' "$`+variable+`"; read -r end`)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, variable+"=") }),
		"POSTROOM_"+name+"_ARGS="+strings.Join(args, " "))
	var log strings.Builder
	cmd.Stderr = &log
	end, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dsn, err := bufio.NewReader(out).ReadString('\n')
	t.Cleanup(func() {
		_, _ = io.WriteString(end, "\n")
		if err := cmd.Wait(); err != nil {
			t.Logf("%v\n%s", err, log.String())
		}
	})
	if err != nil {
		t.Fatalf("no server: %v\n%s", err, log.String())
	}
	return strings.TrimSpace(dsn)
}

func TestTheDoctorIsReadableForPeopleAndStableForPrograms(t *testing.T) {
	res := doctorResult{
		Database: "postgres://app:xxxxx@db/shop", Counts: map[doctor.Severity]int{doctor.OK: 1, doctor.Skip: 1, doctor.Warn: 1, doctor.Fail: 1},
		Findings: []doctor.Finding{
			{Check: "schema.version", Severity: doctor.OK, Seen: "inbox: version 1"},
			{Check: "durability.fsync", Severity: doctor.Fail, Seen: "off, from the configuration file", Why: "A crash can corrupt it.", Mend: "ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf();"},
			{Check: "messages.dead", Severity: doctor.Warn, Seen: "inbox: 3 dead of orders", Why: "Nobody acts.", Mend: "Inbox.Dead"},
			{Check: "vacuum.transactions", Severity: doctor.Skip, Seen: "can't be seen"},
		},
	}
	golden(t, "doctor", res.text())
	var programs strings.Builder
	if err := printJSON(&programs, res); err != nil {
		t.Fatal(err)
	}
	golden(t, "doctor-json", programs.String())
}

func TestTheDoctorExitsWith1ForFailuresAndWithStrictForWarnings(t *testing.T) {
	dir := t.TempDir()
	db := "sqlite:" + filepath.Join(dir, "box.db")
	if got := call(t, "doctor", "--db", db); got.status != exitFailure || !strings.Contains(got.err, "there is no SQLite file") {
		t.Errorf("no file: exit status %d, %s", got.status, got.err)
	}
	must(t, "migrate", "--db", db)
	must(t, "doctor", "--db", db)
	if err := os.Chmod(filepath.Join(dir, "box.db"), 0o666); err != nil { //nolint:gosec // that is the point
		t.Fatal(err)
	}
	if got := must(t, "doctor", "--db", db); !strings.Contains(got, "warn  grants.file") {
		t.Errorf("%s", got)
	}
	if got := call(t, "doctor", "--strict", "--db", db); got.status != exitFailure || got.err != "" {
		t.Errorf("strict: exit status %d, %s", got.status, got.err)
	}
	if got := call(t, "doctor", "--db", db+"?_pragma=synchronous(OFF)"); got.status != exitFailure || got.err != "" {
		t.Errorf("a failure: exit status %d, %s", got.status, got.err)
	}
}

func TestTheDoctorSeesTheStateOfTheTables(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db string) {
		must(t, "migrate", "--db", db, "--prefix", "other") // there must be a file
		res := examine(t, db)
		res.find(t, "schema.version", doctor.Fail, "inbox: no tables", "postroom migrate")
		res.find(t, "schema.tables", doctor.Skip)
		must(t, "migrate", "--db", db)
		pool := inStore(t, db).db
		do := func(statement string) {
			t.Helper()
			if _, err := pool.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		healthy := func() {
			t.Helper()
			for _, f := range examine(t, db).Findings {
				if strings.HasPrefix(f.Check, "schema.") && f.Severity != doctor.OK {
					t.Errorf("%+v", f)
				}
			}
		}
		healthy()

		do("DELETE FROM postroom_outbox_version")
		examine(t, db).find(t, "schema.version", doctor.Fail, "outbox: version 0, migrations up to 1 are pending", "postroom migrate")
		must(t, "migrate", "--db", db)
		healthy()

		do("INSERT INTO postroom_version (version) VALUES (99)")
		res = examine(t, db)
		res.find(t, "schema.version", doctor.Warn, "inbox: version 99")
		res.find(t, "schema.version", doctor.OK, "outbox")
		do("DELETE FROM postroom_version WHERE version = 99")

		do("DROP VIEW postroom_record")
		do("DROP TABLE postroom_outbox_pause")
		res = examine(t, db)
		res.find(t, "schema.tables", doctor.Fail, "postroom_record", "postroom schema")
		res.find(t, "schema.tables", doctor.Fail, "postroom_outbox_pause")
		if len(res.bad("schema.tables")) != 2 {
			t.Errorf("%s", res.text())
		}
	})
}

func TestTheDoctorLooksAtTheTableSetThatIsMeant(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db string) {
		must(t, "migrate", "--db", db, "--prefix", "mail")
		examine(t, db).find(t, "schema.version", doctor.Fail, "no tables")
		res := examine(t, db, "--prefix", "mail")
		res.find(t, "schema.tables", doctor.OK)
		res.find(t, "schema.indexes", doctor.OK)
	})
}

// A dialect that has no file here yet still gets the checks of all.
func TestTheDoctorKnowsLessOfADatabaseWithoutChecks(t *testing.T) {
	db := "sqlite:" + filepath.Join(t.TempDir(), "box.db")
	must(t, "migrate", "--db", db)
	res := examineWith(t, db, func(p *doctor.Patient) {
		other := *p.Dialect
		other.Name, p.Dialect = "other", &other
	})
	res.find(t, "schema.version", doctor.OK)
	res.find(t, "messages.dead", doctor.OK)
	for _, check := range []string{"schema.tables", "schema.indexes", "clock.offset", "server.version"} {
		res.find(t, check, doctor.Skip, "other")
	}
}

func TestTheDoctorMeasuresTheClock(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db string) {
		must(t, "migrate", "--db", db)
		examine(t, db).find(t, "clock.offset", doctor.OK, "round trip")
		for shift, words := range map[time.Duration]string{time.Hour: "1h0m0s behind", -time.Hour: "1h0m0s ahead"} {
			res := examineWith(t, db, func(p *doctor.Patient) { p.Now = func() time.Time { return time.Now().Add(shift) } })
			f := res.find(t, "clock.offset", doctor.Warn, "give or take", "NTP")
			if !strings.Contains(f.Seen, words) && !strings.Contains(f.Seen, "59m59") {
				t.Errorf("%s, want %s", f.Seen, words)
			}
		}
	})
}

func TestTheDoctorSeesMessagesThatAreStuck(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db string) {
		must(t, "migrate", "--db", db)
		store := inStore(t, db)
		b, err := box.New(store, "orders", box.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		var ms []postroom.Message
		for _, id := range []string{"dead", "leased", "waits", "later"} {
			m := postroom.Message{Source: "test", ID: id, Topic: "t", Payload: []byte("{}")}
			if id == "later" {
				m.DueAt = time.Now().Add(time.Hour)
			}
			ms = append(ms, m)
		}
		if _, err := b.Receive(t.Context(), ms); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			leased, err := b.Claim(t.Context(), box.ClaimRequest{Owner: "gone", Limit: 1, Lease: time.Minute})
			if err != nil || len(leased) != 1 {
				t.Fatal(len(leased), err)
			}
		}
		stage := func(id string, stage int) {
			place := ""
			if strings.HasPrefix(db, "postgres") {
				place = fmt.Sprintf(", place = %d", stage)
			}
			n := fmt.Sprintf("UPDATE postroom_work SET stage = %d%s WHERE seq = (SELECT seq FROM postroom_message WHERE id = '%s')", stage, place, id)
			if _, err := store.db.ExecContext(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
		stage("dead", 10)
		res := examine(t, db)
		res.find(t, "messages.dead", doctor.Warn, "inbox: 1 dead of orders", "Requeue")
		res.find(t, "messages.leases", doctor.OK)
		res.find(t, "messages.waiting", doctor.OK)

		// An hour passes.
		const hour = int64(time.Hour / time.Microsecond)
		unit := ""
		if strings.HasPrefix(db, "postgres") {
			unit = " * interval '1 microsecond'"
		}
		for table, column := range map[string]string{"message": "first_seen", "work": "lease_until"} {
			if _, err := store.db.ExecContext(t.Context(), fmt.Sprintf("UPDATE postroom_%s SET %s = %s - %d%s", table, column, column, hour, unit)); err != nil {
				t.Fatal(err)
			}
		}
		res = examine(t, db)
		res.find(t, "messages.leases", doctor.Warn, "inbox: 1 of orders", "worker")
		res.find(t, "messages.waiting", doctor.Warn, "inbox: 1 of orders waiting for more than 15m0s", "worker")
		examine(t, db, "--overdue", "2h").find(t, "messages.waiting", doctor.OK)
	})
}

func TestTheDoctorTellsOfThePasswordNowhere(t *testing.T) {
	got := call(t, "doctor", "--db", "mysql://app:s3cret@127.0.0.1:1/shop")
	if got.status != exitFailure || strings.Contains(got.err+got.out, "s3cret") {
		t.Errorf("exit status %d, %s", got.status, got.err)
	}
}

func TestConnectionsThatAreNotToBeHadFail(t *testing.T) {
	for _, make := range []func(*testing.T) string{freshPostgres, freshMariaDB} {
		db := make(t)
		examine(t, db).find(t, "server.connections", doctor.OK)
		examine(t, db, "--connections", "100000").find(t, "server.connections", doctor.Fail, "100000", "max_connections = ")
	}
}

// holdTransaction leaves a transaction open that has seen and locked something.
func holdTransaction(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	tx, err := db.BeginTx(context.WithoutCancel(t.Context()), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	if _, err := tx.ExecContext(t.Context(), cmp.Or(statement, "SELECT 1")); err != nil {
		t.Fatal(err)
	}
}

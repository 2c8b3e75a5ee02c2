package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/postroom/postroom/cmd/postroom/doctor"
)

func TestWhatIsWrongWithSQLiteIsSeenAndMended(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "box.db")
	db := "sqlite:" + file
	must(t, "migrate", "--db", db)
	for query, want := range map[string]struct {
		check    string
		severity doctor.Severity
		words    []string
	}{
		"_pragma=synchronous(NORMAL)": {"durability.synchronous", doctor.Fail, []string{"NORMAL", "FULL"}},
		"_pragma=synchronous(OFF)":    {"durability.synchronous", doctor.Fail, []string{"OFF"}},
		"_pragma=synchronous(EXTRA)":  {"durability.synchronous", doctor.OK, []string{"EXTRA"}},
		"_pragma=busy_timeout(0)":     {"server.busy_timeout", doctor.Warn, []string{"0 ms", "5000"}},
		"mode=ro":                     {"server.writable", doctor.Fail, []string{"read-only", "mode=ro"}},
		"_pragma=query_only(1)":       {"server.writable", doctor.Fail, []string{"read-only", "query_only"}},
	} {
		examine(t, db+"?"+query).find(t, want.check, want.severity, want.words...)
	}
	admin := inStore(t, db).db
	do := func(statement string) {
		t.Helper()
		if _, err := admin.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}

	for cause, want := range map[string]string{
		"DROP INDEX postroom_work_lease":         "postroom_work: index postroom_work_lease is missing",
		"DROP INDEX postroom_outbox_lane_vacant": "postroom_outbox_lane: index postroom_outbox_lane_vacant is missing",
	} {
		do(cause)
		do(examine(t, db).find(t, "schema.indexes", doctor.Warn, want).Mend)
		examine(t, db).find(t, "schema.indexes", doctor.OK)
	}

	holdTransaction(t, admin, "UPDATE postroom_total SET n = n")
	examine(t, db+"?_pragma=busy_timeout(50)").find(t, "server.writable", doctor.Warn, "writer", "lsof")
}

func TestAnOldJournalOfSQLiteIsSeenAndMended(t *testing.T) {
	db := "sqlite:" + filepath.Join(t.TempDir(), "box.db")
	must(t, "migrate", "--db", db)
	examine(t, db).find(t, "durability.journal_mode", doctor.OK, "wal")
	examine(t, db+"?_pragma=journal_mode(DELETE)").find(t, "durability.journal_mode", doctor.Warn, "delete", "WAL")
	examine(t, db+"?_pragma=journal_mode(MEMORY)").find(t, "durability.journal_mode", doctor.Fail, "memory", "WAL")
	examine(t, db+"?_pragma=journal_mode(WAL)").find(t, "durability.journal_mode", doctor.OK)
}

func TestAFileThatEverybodyCanWriteIsSeen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // others may look
		t.Fatal(err)
	}
	file := filepath.Join(dir, "box.db")
	must(t, "migrate", "--db", "sqlite:"+file)
	examine(t, "sqlite:"+file).find(t, "grants.file", doctor.OK)
	for _, path := range []string{file, dir} {
		if err := os.Chmod(path, 0o777); err != nil { //nolint:gosec // that is the point
			t.Fatal(err)
		}
		examine(t, "sqlite:"+file).find(t, "grants.file", doctor.Warn, "chmod o-w "+path)
		if err := os.Chmod(path, 0o755); err != nil { //nolint:gosec // others may look
			t.Fatal(err)
		}
	}
}

func TestAFileInMemoryIsSeen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells the kind of file system")
	}
	dir, err := os.MkdirTemp("/dev/shm", "postroom-doctor-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	db := "sqlite:" + filepath.Join(dir, "box.db")
	must(t, "migrate", "--db", db)
	examine(t, db).find(t, "durability.filesystem", doctor.Warn, "tmpfs", "disk")
}

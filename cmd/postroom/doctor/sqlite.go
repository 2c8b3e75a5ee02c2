package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// sqlite is a file. Much of what matters is set by each connection for itself:
// the doctor sees what the URL sets, and says so.
var sqlite = database{
	clock:     "SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000",
	relations: sqliteRelations,
	indexes:   sqliteIndexes,
	checks: []check{
		{
			name: "server.version",
			why:  "Before 3.51.3, and 3.50.7, the file can be corrupted when two connections write and checkpoint at the same instant; before 3.42 functions are missing that the statements use.",
			look: sqliteVersion,
		},
		{
			name: "server.writable",
			why:  "Nothing can be received, claimed or settled.",
			look: sqliteWritable,
		},
		{
			name: "server.busy_timeout",
			why:  "A connection that does not wait for the writer fails at once when another one writes.",
			look: sqliteBusyTimeout,
		},
		{
			name: "durability.synchronous",
			why:  "When the power goes, the last commits are lost: messages that were acknowledged, effects that were done.",
			look: sqliteSynchronous,
		},
		{
			name: "durability.journal_mode",
			why:  "Without a journal on disk a crash corrupts the file; without WAL readers and the writer block each other.",
			look: sqliteJournal,
		},
		{
			name: "durability.filesystem",
			why:  "SQLite needs locks and shared memory that work between processes, and a disk that keeps what it was given.",
			look: sqliteFilesystem,
		},
		{
			name: "grants.file",
			why:  "Everyone on this machine can change messages, or corrupt the file.",
			look: sqliteMode,
		},
	},
}

func sqliteRelations(ctx context.Context, p *Patient) (map[string]bool, error) {
	rows, err := p.rows(ctx, "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
	there := map[string]bool{}
	for _, row := range rows {
		there[row[0]] = true
	}
	return there, err
}

func sqliteIndexes(ctx context.Context, p *Patient) (found []index, err error) {
	rows, err := p.rows(ctx, `SELECT m.name, i.name, i."unique", i.partial, (SELECT group_concat(c.name) FROM pragma_index_info(i.name) c)
FROM sqlite_master m, pragma_index_list(m.name) i WHERE m.type = 'table'`)
	for _, row := range rows {
		found = append(found, index{table: row[0], name: row[1], unique: row[2] == "1", partial: row[3] == "1", columns: strings.Split(row[4], ","), drop: `DROP INDEX "` + row[1] + `";`})
	}
	return found, err
}

func sqliteVersion(ctx context.Context, p *Patient) ([]result, error) {
	row, err := p.row(ctx, "SELECT sqlite_version()")
	if err != nil {
		return nil, err
	}
	return judgeSQLiteVersion(row[0]), nil
}

func judgeSQLiteVersion(version string) []result {
	var n [3]int
	for i, part := range strings.SplitN(version, ".", 3) {
		n[i], _ = strconv.Atoi(part) // what is no number is old
	}
	at := func(minor, patch int) bool { return n[1] == minor && n[2] >= patch }
	seen := "SQLite " + version + " in this program; ask your own with SELECT sqlite_version()"
	switch {
	case n[0] < 3 || n[0] == 3 && n[1] < 42:
		return []result{{Fail, seen, "build with a driver that bundles SQLite 3.51.3 or later"}}
	case n[0] > 3 || n[1] > 51 || at(51, 3) || at(50, 7):
		return fine("%s", seen)
	}
	return []result{{Fail, seen + ": it has the WAL-reset bug", "build with a driver that bundles SQLite 3.51.3 or later"}}
}

const (
	sqliteBusy     = 5
	sqliteReadOnly = 8
)

// sqliteWritable takes the writer's lock, writes a number that is there already,
// and takes it all back: a database that is read-only gives the lock, but does not
// let write.
func sqliteWritable(ctx context.Context, p *Patient) ([]result, error) {
	conn, err := p.DB.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	var version int
	if err := conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return nil, err
	}
	if _, err = conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err == nil {
		_, err = conn.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", version))
		if _, end := conn.ExecContext(ctx, "ROLLBACK"); err == nil {
			return fine("the writer's lock can be had"), end
		}
	}
	var coded interface{ Code() int }
	if !errors.As(err, &coded) {
		return nil, err
	}
	switch coded.Code() & 0xff {
	case sqliteReadOnly:
		return []result{{Fail, fmt.Sprintf("the database is read-only: %v", err), "take mode=ro and query_only off the URL, and let the program write the file and its directory: chown, chmod u+w, mount -o remount,rw"}}, nil
	case sqliteBusy:
		return []result{{Warn, fmt.Sprintf("another connection holds the writer's lock for too long: %v", err), "end the long transaction; lsof " + p.File + " names the processes"}}, nil
	}
	return []result{{Fail, fmt.Sprintf("the writer's lock can't be had: %v", err), "move the file to a local disk whose file system has locks"}}, nil
}

func sqliteBusyTimeout(ctx context.Context, p *Patient) ([]result, error) {
	row, err := p.row(ctx, "PRAGMA busy_timeout")
	if err != nil {
		return nil, err
	}
	ms, err := strconv.Atoi(row[0])
	if ms < 1000 {
		return []result{{Warn, row[0] + " ms, by this URL", "add _pragma=busy_timeout(5000) to the DSN of each program"}}, err
	}
	return fine("%s ms, by this URL; each program sets its own", row[0]), err
}

// sqliteLevels are the names of the values of PRAGMA synchronous.
var sqliteLevels = []string{"OFF", "NORMAL", "FULL", "EXTRA"}

func sqliteSynchronous(ctx context.Context, p *Patient) ([]result, error) {
	row, err := p.row(ctx, "PRAGMA synchronous")
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(row[0])
	if err != nil || n < 0 || n >= len(sqliteLevels) {
		return nil, fmt.Errorf("synchronous is %q", row[0])
	}
	if n < 2 {
		return []result{{Fail, sqliteLevels[n] + ", by this URL", "PRAGMA synchronous = FULL; on each connection: _pragma=synchronous(FULL) in the DSN of each program, which is SQLite's default"}}, nil
	}
	return fine("%s, by this URL; each program sets its own, and FULL is SQLite's default", sqliteLevels[n]), nil
}

func sqliteJournal(ctx context.Context, p *Patient) ([]result, error) {
	row, err := p.row(ctx, "PRAGMA journal_mode")
	if err != nil {
		return nil, err
	}
	switch mode := strings.ToLower(row[0]); mode {
	case "wal":
		return fine("wal"), nil
	case "off", "memory":
		return []result{{Fail, mode, "PRAGMA journal_mode = WAL; and take journal_mode out of the DSN of each program"}}, nil
	default:
		return []result{{Warn, mode, "PRAGMA journal_mode = WAL; once, it is kept in the file ('postroom migrate' does it for new tables)"}}, nil
	}
}

func sqliteFilesystem(_ context.Context, p *Patient) ([]result, error) {
	kind, err := filesystem(filepath.Dir(p.File))
	if err != nil {
		return nil, err
	}
	return judgeFilesystem(kind), nil
}

// judgeFilesystem knows the names that are trouble; an empty one is unknown.
func judgeFilesystem(kind string) []result {
	switch kind {
	case "nfs", "smb", "cifs", "afs", "ceph", "lustre", "coda":
		return []result{{Fail, kind + ", a file system of a network", "move the file to a local disk, or use a database server"}}
	case "9p", "fuse", "vboxsf":
		return []result{{Warn, kind + ", whose locks may not hold between machines", "move the file to a local disk"}}
	case "tmpfs", "ramfs":
		return []result{{Warn, kind + ": all is lost with the machine's memory", "move the file to a disk"}}
	case "":
		return skipped("the kind of file system is not known here")
	}
	return fine("%s", kind)
}

func sqliteMode(_ context.Context, p *Patient) (results []result, err error) {
	for _, path := range []string{p.File, filepath.Dir(p.File)} {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		// In a directory like /tmp only the owner of a file can replace it.
		if info.Mode()&0o002 != 0 && info.Mode()&os.ModeSticky == 0 {
			results = append(results, result{Warn, fmt.Sprintf("%s can be written by everyone (%s)", path, info.Mode()), "chmod o-w " + path})
		}
	}
	if results == nil {
		results = fine("not everyone can write it")
	}
	return results, nil
}

package doctor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// sqlserver looks at what the catalog says of this database.
var sqlserver = database{
	clock:   "SELECT DATEDIFF_BIG(MICROSECOND, '1970-01-01', SYSUTCDATETIME())",
	refused: sqlserverRefused,
	checks: []check{
		{
			name: "server.version",
			why:  "Below compatibility level 130 a database has no OPENJSON, by which rows come to the server.",
			look: ofDatabase("CONCAT(compatibility_level, '')", judgeCompatibility),
		},
		{
			name: "server.writable",
			why:  "Nothing can be received, claimed or settled.",
			look: ofDatabase("CONCAT(CAST(is_read_only AS INT), '')", judgeReadOnly),
		},
		{
			name: "server.row_versions",
			why:  "Without row versions, whoever looks at a message waits for whoever changes it, and a group waits for open transactions that received one of its messages.",
			look: ofDatabase("CONCAT(CAST(is_read_committed_snapshot_on AS INT), '')", judgeRowVersions),
		},
		{
			name: "durability.delayed_durability",
			why:  "A crash loses the last moments: messages that were acknowledged, effects that were done.",
			look: ofDatabase("delayed_durability_desc", judgeDelayedDurability),
		},
	},
}

// sqlserverRefused: no permission on an object, or on the database.
func sqlserverRefused(err error) bool {
	var numbered interface{ SQLErrorNumber() int32 }
	return errors.As(err, &numbered) && (numbered.SQLErrorNumber() == 229 || numbered.SQLErrorNumber() == 916)
}

// ofDatabase judges what the catalog has of this database in one column.
func ofDatabase(column string, judge func(value string) []result) func(context.Context, *Patient) ([]result, error) {
	return func(ctx context.Context, p *Patient) ([]result, error) {
		row, err := p.row(ctx, "SELECT "+column+" FROM sys.databases WHERE database_id = DB_ID()")
		if err != nil {
			return nil, err
		}
		return judge(row[0]), nil
	}
}

func judgeCompatibility(level string) []result {
	n, err := strconv.Atoi(level)
	if err != nil || n < 130 {
		return []result{{Fail, "compatibility level " + level, "ALTER DATABASE CURRENT SET COMPATIBILITY_LEVEL = 150;"}}
	}
	return fine("compatibility level %d", n)
}

func judgeReadOnly(flag string) []result {
	if flag == "1" {
		return []result{{Fail, "the database is read-only", "connect to the one that can be written, or ALTER DATABASE CURRENT SET READ_WRITE;"}}
	}
	return fine("the database can be written")
}

func judgeRowVersions(flag string) []result {
	if flag != "1" {
		return []result{{Warn, "READ_COMMITTED_SNAPSHOT is OFF", "ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT ON WITH ROLLBACK IMMEDIATE; when nothing else in this database counts on readers to wait"}}
	}
	return fine("READ_COMMITTED_SNAPSHOT is ON")
}

func judgeDelayedDurability(setting string) []result {
	switch setting {
	case "DISABLED", "ALLOWED": // then a transaction would have to ask for it, and ours do not
		return fine("DELAYED_DURABILITY is %s", setting)
	}
	return []result{{Fail, fmt.Sprintf("DELAYED_DURABILITY is %s", setting), "ALTER DATABASE CURRENT SET DELAYED_DURABILITY = DISABLED;"}}
}

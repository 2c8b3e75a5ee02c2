package pgxstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// errPooler: a hint would go to whichever session the pooler lends out next.
var errPooler = errors.New("a pooler (such as PgBouncer) stands between this program and PostgreSQL: it can't be listened through")

// A way is what a connection has to heed on its way to the server. A pooler in
// transaction mode gives each transaction another session, so that a statement
// which was prepared in one is missing in the next.
type way struct {
	pooler bool
	// mode is how statements are run, if not as the pool is set.
	mode pgx.QueryExecMode
	// undescribed: in that mode the server is not asked for the types of arguments.
	undescribed bool
}

// wayKey is under which a connection keeps its way.
const wayKey = "postroom.way"

// wayOf finds out, once for each connection: a pooler does not know which session
// it will lend out, and so gives clients a number that is not the session's own.
func wayOf(ctx context.Context, conn *pgx.Conn) (way, error) {
	kept := conn.PgConn().CustomData()
	if w, ok := kept[wayKey].(way); ok {
		return w, nil
	}
	// Not through pgx itself, which would prepare it, or refuse by the encoding.
	results, err := conn.PgConn().Exec(ctx, "SELECT pg_backend_pid()").ReadAll()
	if err != nil {
		return way{}, fmt.Errorf("look for a pooler: %w", err)
	}
	session := string(results[0].Rows[0][0])
	w := way{pooler: session != strconv.FormatUint(uint64(conn.PgConn().PID()), 10)}
	if w.pooler {
		w.mode = unprepared(conn.Config())
	}
	switch cmp.Or(w.mode, conn.Config().DefaultQueryExecMode) {
	case pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol:
		w.undescribed = true
	}
	kept[wayKey] = w
	return w, nil
}

// unprepared gives the mode in which nothing outlasts a round trip, or 0 where the
// program has chosen one itself.
func unprepared(config *pgx.ConnConfig) pgx.QueryExecMode {
	switch mode := config.DefaultQueryExecMode; {
	case mode != pgx.QueryExecModeCacheStatement && mode != pgx.QueryExecModeDescribeExec:
		return 0
	case config.DescriptionCacheCapacity > 0:
		return pgx.QueryExecModeCacheDescribe
	default:
		return pgx.QueryExecModeExec
	}
}

// A poolWay is the way of all connections of a pool, found out by the first.
type poolWay struct {
	pool  *pgxpool.Pool
	found atomic.Pointer[way]
}

func (p *poolWay) find(ctx context.Context) (way, error) {
	if w := p.found.Load(); w != nil {
		return *w, nil
	}
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return way{}, err
	}
	defer conn.Release()
	w, err := wayOf(ctx, conn.Conn())
	if err == nil {
		p.found.Store(&w)
	}
	return w, err
}

// discreet reports whether values go beside the statements, not within them.
func (p *poolWay) discreet() bool {
	w := p.found.Load()
	return w != nil && !w.undescribed
}

// pipelines reports whether a batch can go as the pool is set: pgx has no other
// mode for those.
func (p *poolWay) pipelines() bool {
	w := p.found.Load()
	return w != nil && w.mode == 0
}

package park

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// OpenPool opens a pool of pgx whose sessions stop in the lot. They can only be
// parked and counted: what is to fail needs a pool that Open made. No conns means
// the default of pgx.
func (l *Lot) OpenPool(t testing.TB, dsn string, conns int) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.Tracer = &tracer{lot: l, ran: map[*pgx.Conn]string{}}
	if conns > 0 {
		config.MaxConns = int32(conns)
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.Clear()
		pool.Close()
	})
	return pool
}

type tracer struct {
	lot *Lot
	mu  sync.Mutex
	ran map[*pgx.Conn]string
}

type traceKey struct{}

func (t *tracer) TraceQueryStart(ctx context.Context, c *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	name := nameOf(d.SQL)
	for _, verb := range []string{Begin, Commit, Rollback} {
		if strings.HasPrefix(d.SQL, strings.ToLower(verb)) {
			name = verb
		}
	}
	t.stop(Before, c, name)
	return context.WithValue(ctx, traceKey{}, name)
}

func (t *tracer) TraceQueryEnd(ctx context.Context, c *pgx.Conn, _ pgx.TraceQueryEndData) {
	if name, ok := ctx.Value(traceKey{}).(string); ok {
		t.stop(After, c, name)
	}
}

func (t *tracer) stop(when When, c *pgx.Conn, name string) {
	for _, s := range t.lot.find(when, name, t.transaction(when, c, name)) {
		_ = s.stop() // a tracer has no say in what comes of it
	}
}

// transaction gives what a session has run since it began one.
func (t *tracer) transaction(when When, c *pgx.Conn, name string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	ran := t.ran[c]
	switch {
	case when == Before && name == Begin:
		t.ran[c] = ""
	case when == Before:
		t.ran[c] += name + "\n"
	}
	return ran
}

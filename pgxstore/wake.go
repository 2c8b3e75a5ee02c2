package pgxstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// listenPause is how long a listener that lost its connection waits before it
// takes another; until then polling finds what there is.
const listenPause = time.Second

// Wake lets the workers of other processes know that there may be something to
// claim. It is a hint: nothing depends on its arrival, so that nobody waits until
// it is durable.
func (s *Store) Wake(ctx context.Context, consumer string) error {
	return s.db.Exec(ctx, "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)", s.channel, consumer)
}

// Listen calls hint for each Wake of the consumer, by any process, until ctx is
// done. It takes one connection out of the pool for that time. Through a pooler
// there is no listening: it gives an error at once.
func (s *Store) Listen(ctx context.Context, consumer string, hint func()) error {
	for ctx.Err() == nil {
		if w, err := s.db.route.find(ctx); err == nil && w.pooler {
			return errPooler
		}
		s.listen(ctx, consumer, hint)
		select {
		case <-ctx.Done():
		case <-time.After(listenPause):
		}
	}
	return nil
}

// listen returns when the connection is lost. What came before it listened, or
// after it stopped, is found by polling.
func (s *Store) listen(ctx context.Context, consumer string, hint func()) {
	pooled, err := s.db.pool.Acquire(ctx)
	if err != nil {
		return
	}
	// The connection has state now, and so does not go back into the pool.
	conn := pooled.Hijack()
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), listenPause)
		defer cancel()
		_ = conn.Close(closing)
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{s.channel}.Sanitize()); err != nil {
		return
	}
	hint()
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return
		}
		if n.Payload == consumer {
			hint()
		}
	}
}

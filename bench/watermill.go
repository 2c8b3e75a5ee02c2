package main

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	watersql "github.com/ThreeDotsLabs/watermill-sql/v3/pkg/sql"
	watermessage "github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/stdlib"
)

const waterTopic = "bench"

// watermillPg is Watermill's SQL publisher and subscriber. The subscriber gives
// one message at a time, waits for its ack, and writes the offset once per batch;
// its transaction locks the offset, so that a second one would only wait.
//
// Tuned means payloads as bytes instead of JSON, batches as large as the row's,
// and a short poll. Its own benchmark has the defaults and payloads as bytes.
type watermillPg struct {
	*pgDatabase
	tuned bool
}

func newWatermill(ctx context.Context, server string, tuned bool) (system, error) {
	d, err := newPgDatabase(ctx, server)
	if err != nil {
		return nil, err
	}
	w := &watermillPg{d, tuned}
	pool, err := d.pool(ctx)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }()
	sub, err := w.subscriber(db, 0)
	if err != nil {
		return nil, err
	}
	if err := sub.SubscribeInitialize(waterTopic); err != nil {
		return nil, fmt.Errorf("migrate Watermill: %w", err)
	}
	return w, sub.Close()
}

func (w *watermillPg) schema(batch int) watersql.DefaultPostgreSQLSchema {
	if !w.tuned {
		return watersql.DefaultPostgreSQLSchema{}
	}
	return watersql.DefaultPostgreSQLSchema{
		GeneratePayloadType: func(string) string { return "BYTEA" },
		SubscribeBatchSize:  batch,
	}
}

func (w *watermillPg) subscriber(db *sql.DB, batch int) (*watersql.Subscriber, error) {
	config := watersql.SubscriberConfig{
		SchemaAdapter:  w.schema(batch),
		OffsetsAdapter: watersql.DefaultPostgreSQLOffsetsAdapter{},
	}
	if w.tuned {
		config.PollInterval = 20 * time.Millisecond
	}
	return watersql.NewSubscriber(db, config, watermill.NopLogger{})
}

func (w *watermillPg) name() string {
	if w.tuned {
		return "Watermill tuned"
	}
	return "Watermill default"
}

func (w *watermillPg) beside(ctx context.Context) (system, error) {
	return newWatermill(ctx, w.server, w.tuned)
}

// child: no row of the outbox kills a process.
func (w *watermillPg) child() (kind, dsn string) { return "", "" }

func (w *watermillPg) reset(ctx context.Context) error {
	return w.execute(ctx, "TRUNCATE watermill_"+waterTopic+", watermill_offsets_"+waterTopic)
}

// fill writes messages as 500 transactions would have. Their numbers are below
// those of any that a server still has open.
func (w *watermillPg) fill(ctx context.Context, kind rows, n int) error {
	if kind != ready {
		return errNotApplicable
	}
	payload := "to_json(repeat('abcdefgh', 32))"
	if w.tuned {
		payload = "convert_to(repeat('abcdefgh', 32), 'UTF8')"
	}
	return w.execute(ctx,
		fmt.Sprintf(`INSERT INTO watermill_%s (uuid, payload, metadata, transaction_id)
			SELECT gen_random_uuid()::text, %s, '{}', (10 + n * 500 / %d)::text::xid8 FROM generate_series(1, %d) n`, waterTopic, payload, n, n),
		"VACUUM ANALYZE watermill_"+waterTopic)
}

func (w *watermillPg) open(ctx context.Context) (session, error) {
	pool, err := w.pool(ctx)
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDBFromPool(pool)
	db.SetMaxIdleConns(0) // the pool keeps them
	return &watermillSession{system: w, db: db, release: pool.Close}, nil
}

type watermillSession struct {
	system  *watermillPg
	db      *sql.DB
	release func()
}

func (s *watermillSession) close() {
	_ = s.db.Close()
	s.release()
}

func (s *watermillSession) receive(ctx context.Context, m message) error {
	return s.receiveAll(ctx, []message{m})
}

// receiveAll publishes in a transaction, for which Watermill has a publisher of
// its own.
func (s *watermillSession) receiveAll(ctx context.Context, ms []message) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	publisher, err := watersql.NewPublisher(tx, watersql.PublisherConfig{SchemaAdapter: s.system.schema(0)}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	msgs := make([]*watermessage.Message, len(ms))
	for i, m := range ms {
		payload := m.payload
		if !s.system.tuned {
			payload = strconv.AppendQuote(nil, string(m.payload))
		}
		msgs[i] = watermessage.NewMessage(m.id, payload)
		msgs[i].SetContext(ctx)
	}
	if err := publisher.Publish(waterTopic, msgs...); err != nil {
		return err
	}
	return tx.Commit()
}

// work counts a message with its ack, of which up to one batch is not committed
// yet when the time is up.
func (s *watermillSession) work(ctx context.Context, w work) error {
	sub, err := s.system.subscriber(s.db, w.concurrency)
	if err != nil {
		return err
	}
	msgs, err := sub.Subscribe(ctx, waterTopic)
	if err != nil {
		return err
	}
	for m := range msgs {
		w.started(message{id: m.UUID, payload: m.Payload})
		m.Ack()
		w.settled(1)
	}
	return sub.Close()
}

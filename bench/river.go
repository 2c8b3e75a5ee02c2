package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const (
	riverTuned   = "River tuned"
	riverDefault = "River default"
)

// riverPg is River, with the settings of its own benchmark or its defaults.
type riverPg struct {
	*pgDatabase
	tuned bool
}

func newRiver(ctx context.Context, server string, tuned bool) (system, error) {
	d, err := newPgDatabase(ctx, server)
	if err != nil {
		return nil, err
	}
	pool, err := d.pool(ctx)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: newLogger()})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, fmt.Errorf("migrate River: %w", err)
	}
	return &riverPg{d, tuned}, d.execute(ctx, effectTable)
}

func (r *riverPg) name() string {
	if r.tuned {
		return riverTuned
	}
	return riverDefault
}

func (r *riverPg) beside(ctx context.Context) (system, error) {
	return newRiver(ctx, r.server, r.tuned)
}

func (r *riverPg) child() (kind, dsn string) { return "river", r.dsn }

func (r *riverPg) reset(ctx context.Context) error {
	return r.execute(ctx, "TRUNCATE river_job, river_leader, river_notification, bench_effect")
}

// fill writes jobs as unique inserts leave them. Sequences of jobs are not part
// of River itself; what waits behind a job is pending there.
func (r *riverPg) fill(ctx context.Context, kind rows, n int) error {
	state, times := "available", "now(), NULL::timestamptz"
	switch kind {
	case ready:
	case finished:
		// To write millions of jobs takes River's table minutes, and it deletes what
		// was completed a day ago.
		n = min(n, 1_000_000)
		state, times = "completed", "now(), now()"
	case scheduled:
		state, times = "scheduled", "now() + interval '7 days', NULL::timestamptz"
	case queued:
		state, times = "pending", "now(), NULL::timestamptz"
	case grouped:
		return errNotApplicable
	}
	statement := fmt.Sprintf(`INSERT INTO river_job (state, kind, args, max_attempts, tags, unique_key, unique_states, scheduled_at, finalized_at)
		SELECT '%s', 'bench', jsonb_build_object('id', i, 'payload', repeat('abcdefgh', 32)), 25, '{}', sha256(i::bytea), B'11110101', %s
		FROM (SELECT gen_random_uuid()::text AS i FROM generate_series(1, %d)) s`, state, times, n)
	if err := r.load(ctx, n, tableFill{"river_job", []string{statement}}); err != nil {
		return err
	}
	return r.execute(ctx, "VACUUM ANALYZE river_job")
}

func (r *riverPg) open(ctx context.Context) (session, error) {
	pool, err := r.pool(ctx)
	if err != nil {
		return nil, err
	}
	s := &riverSession{pool: pool, tuned: r.tuned}
	inserter, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: newLogger()})
	s.client.Store(inserter)
	return s, err
}

type riverSession struct {
	pool  *pgxpool.Pool
	tuned bool
	// client is the one that works, once there is one: it wakes itself.
	client atomic.Pointer[river.Client[pgx.Tx]]
}

func (s *riverSession) close() { s.pool.Close() }

// benchArgs are deduplicated by their id, as a message is.
type benchArgs struct {
	ID      string `json:"id" river:"unique"`
	Payload string `json:"payload"`
}

func (benchArgs) Kind() string { return "bench" }

func (benchArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}}
}

func (s *riverSession) receive(ctx context.Context, m message) error {
	_, err := s.client.Load().Insert(ctx, benchArgs{m.id, string(m.payload)}, nil)
	return err
}

// receiveAll takes COPY when tuned, which fails as a whole on a duplicate.
func (s *riverSession) receiveAll(ctx context.Context, ms []message) error {
	params := make([]river.InsertManyParams, len(ms))
	for i, m := range ms {
		params[i].Args = benchArgs{m.id, string(m.payload)}
	}
	var err error
	if s.tuned {
		_, err = s.client.Load().InsertManyFast(ctx, params)
	} else {
		_, err = s.client.Load().InsertMany(ctx, params)
	}
	return err
}

func (s *riverSession) work(ctx context.Context, w work) error {
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, &riverWorker{work: w, pool: s.pool}); err != nil {
		return err
	}
	config := &river.Config{
		Logger:               newLogger(),
		Queues:               map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: w.concurrency}},
		Workers:              workers,
		JobTimeout:           w.lease,
		RescueStuckJobsAfter: w.lease,
	}
	if s.tuned {
		config.FetchCooldown, config.FetchPollInterval = 2*time.Millisecond, 20*time.Millisecond
	}
	client, err := river.NewClient(riverpgxv5.New(s.pool), config)
	if err != nil {
		return err
	}
	// Completion is what counts, and only the subscription knows of it.
	events, unsubscribe := client.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: 1_000_000, Kinds: []river.EventKind{river.EventKindJobCompleted},
	})
	counted := make(chan struct{})
	go func() {
		defer close(counted)
		for range events {
			w.settled(1)
		}
	}()
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	s.client.Store(client)
	<-ctx.Done()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	err = client.StopAndCancel(stopping)
	unsubscribe()
	<-counted
	return err
}

type riverWorker struct {
	river.WorkerDefaults[benchArgs]
	work work
	pool *pgxpool.Pool
}

func (r *riverWorker) Work(ctx context.Context, job *river.Job[benchArgs]) error {
	r.work.started(message{id: job.Args.ID, payload: []byte(job.Args.Payload)})
	if !r.work.inserting {
		return nil
	}
	return pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO bench_effect (id) VALUES ($1)", job.Args.ID); err != nil {
			return err
		}
		_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
		return err
	})
}

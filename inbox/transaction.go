package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// call runs a handler in a transaction. The verdicts run parallel to the job's
// messages. An error rolls all back, and is everyone's verdict.
type call func(ctx context.Context, tx postroom.Tx) (verdicts []error, err error)

// singleCall runs a transactional handler on its message. Whatever its verdict
// but success, what it wrote is undone.
func (d *dispatcher) singleCall(r *route, m *postroom.Message) call {
	return func(ctx context.Context, tx postroom.Tx) ([]error, error) {
		return []error{nil}, d.in.box.Observe(box.WithMessage(ctx, m), m, r.opts.Name, func(ctx context.Context) error {
			return r.handler.Handle(ctx, m)
		})
	}
}

// errOutcomes is the verdict on a batch whose handler miscounted.
var errOutcomes = errors.New("inbox: batch handler gave another number of outcomes than it got messages")

// batchCall runs a batch handler. Observers see one run per message.
func (d *dispatcher) batchCall(r *route, msgs []*postroom.Message) call {
	return func(ctx context.Context, tx postroom.Tx) (verdicts []error, err error) {
		finish := d.in.box.ObserveBatch(ctx, msgs, r.opts.Name)
		err = box.Safely(ctx, func(ctx context.Context) (err error) {
			verdicts, err = r.batch(ctx, tx, msgs)
			return err
		})
		switch {
		case err == nil && verdicts == nil:
			verdicts = make([]error, len(msgs))
		case err == nil && len(verdicts) != len(msgs):
			err = postroom.Permanent(errOutcomes)
		}
		finish(verdicts, err)
		return verdicts, err
	}
}

// runTx runs a handler in a transaction of the store. The settling comes last in
// it: an earlier check would lock the row for as long as the handler runs. What
// the database gave up is run again, a few times.
func (d *dispatcher) runTx(ctx context.Context, job *box.Job, r *route, run call) {
	if !d.takeTurn(ctx, job) {
		for _, m := range job.Messages {
			job.Release(m, 0)
		}
		return
	}
	// The time of the handler begins with its transaction: waiting for a
	// connection, or for the one that writes, is not its fault.
	limited, cancel := ctx, func() {}
	defer func() { cancel() }()
	start := func() context.Context {
		cancel()
		limited, cancel = d.limit(ctx, r)
		return limited
	}
	err := errExited
	defer func() {
		d.giveTurn()
		if err == nil {
			return
		}
		for _, m := range job.Messages {
			job.End(m, d.settlement(limited, r, m, err))
		}
	}()
	for try := 1; ; try++ {
		err = d.transact(ctx, start, job, r, run)
		if try == onceTries || !errors.Is(err, postroom.ErrRetry) || !sleep(limited, onceDelay(try)) {
			return
		}
	}
}

// notRun says that the store kept a handler from running.
type notRun struct{ error }

func (e *notRun) Unwrap() error { return e.error }

// transact gives nil when the job is settled or must be left alone. start gives
// the context of the handler.
func (d *dispatcher) transact(ctx context.Context, start func() context.Context, job *box.Job, r *route, run call) error {
	tx, err := d.in.box.Store().Begin(ctx)
	if err != nil {
		return &notRun{fmt.Errorf("begin: %w", err)}
	}
	defer rollback(ctx, tx)
	defer job.Writing()()
	limited := start()
	below, committed := box.Committing(withTx(limited, tx))
	verdicts, err := run(below, tx)
	if err != nil {
		return err
	}
	if job.Lost() {
		d.logLost(ctx, job)
		return postroom.ErrLeaseLost
	}
	ends := make([]*box.End, len(job.Messages))
	for i, m := range job.Messages {
		s := d.settlement(limited, r, m, verdicts[i])
		s.Lease = m.Lease
		ends[i] = &box.End{Settlement: s, Message: m}
	}
	job.Final(true)
	defer job.Final(false)
	settled, err := d.in.box.SettleTx(ctx, tx, ends)
	if err != nil {
		return err
	}
	for i := range settled {
		if !settled[i].Applied {
			d.logLost(ctx, job)
			return postroom.ErrLeaseLost
		}
	}
	if err := tx.Commit(ctx); err != nil {
		if errors.Is(err, postroom.ErrUnknown) {
			d.inDoubt(ctx, ends, settled)
			return nil
		}
		return fmt.Errorf("commit: %w", err)
	}
	committed()
	d.in.box.Report(ctx, ends, settled)
	return nil
}

// inDoubt looks what became of a commit whose answer was lost. If it took
// effect, that is reported; else the leases lapse: settling otherwise could undo
// what is still on its way.
func (d *dispatcher) inDoubt(ctx context.Context, ends []*box.End, settled []box.Settled) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if d.committed(ctx, ends) {
		d.in.box.Report(ctx, ends, settled)
		return
	}
	for i := range ends {
		d.in.box.LogAbout(ctx, slog.LevelWarn, "answer to a commit was lost, the lease will lapse", ends[i].Message)
	}
}

// committed recognises the transaction by a message that it made Done under its
// own fence: nobody else can have.
func (d *dispatcher) committed(ctx context.Context, ends []*box.End) bool {
	i := slices.IndexFunc(ends, func(e *box.End) bool { return e.Verb == box.Ack })
	if i < 0 {
		return false
	}
	m := ends[i].Message
	r, err := d.in.box.Get(ctx, m.Source, m.ID)
	return err == nil && r.State == postroom.StateDone && r.Done.Fence == m.Lease.Fence
}

func (d *dispatcher) logLost(ctx context.Context, job *box.Job) {
	for _, m := range job.Messages {
		d.in.box.LogAbout(ctx, slog.LevelWarn, "lease was lost, its transaction is rolled back", m)
	}
}

// takeTurn waits for the turn of a transactional handler on a serial store. It
// gives up when the worker stops or the lease is lost: the handler has not run.
func (d *dispatcher) takeTurn(ctx context.Context, job *box.Job) bool {
	if d.turn == nil {
		return true
	}
	select {
	case d.turn <- struct{}{}:
		return true
	default:
	}
	select {
	case d.turn <- struct{}{}:
		return true
	case <-job.Stopping():
		return false
	case <-ctx.Done():
		return false
	}
}

func (d *dispatcher) giveTurn() {
	if d.turn != nil {
		<-d.turn
	}
}

package box

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/postroom/postroom"
)

// Receive keeps messages to be handled later and commits. A message that can't
// be used fails alone, by its result; the error joins all failures, so that
// whoever looks only at the error acknowledges nothing by mistake.
func (b *Box) Receive(ctx context.Context, msgs []postroom.Message) ([]postroom.Result, error) {
	if msgs == nil {
		return nil, &postroom.ArgumentError{Argument: "messages", Reason: "are nil"}
	}
	results := make([]postroom.Result, len(msgs))
	puts := make([]Put, 0, len(msgs))
	var errs []error
	for i := range msgs {
		n := len(puts)
		puts = append(puts, Put{Mode: Queue, Message: msgs[i], Keep: b.opts.KeepContent})
		if err := b.Prepare(&puts[n]); err != nil {
			puts = puts[:n]
			results[i].Err = err
			errs = append(errs, nth(msgs, i, err))
		}
	}
	if len(puts) > 0 {
		put, err := b.queue(ctx, nil, puts)
		if err != nil {
			errs = append(errs, err)
		}
		for i := range results {
			switch {
			case results[i].Err != nil: // was not put
			case err != nil:
				results[i].Err = err
			default:
				results[i] = put[0].Result()
				if put[0].Err != nil {
					errs = append(errs, nth(msgs, i, put[0].Err))
				}
				put = put[1:]
			}
		}
	}
	if len(errs) == 1 {
		return results, errs[0]
	}
	return results, errors.Join(errs...)
}

// nth says which message of a batch an error is about.
func nth(msgs []postroom.Message, i int, err error) error {
	if len(msgs) == 1 {
		return err
	}
	return fmt.Errorf("message %d of %d: %w", i+1, len(msgs), err)
}

// ReceiveTx is Receive inside the caller's transaction: one message that can't
// be used fails the call before any SQL.
func (b *Box) ReceiveTx(ctx context.Context, tx postroom.Tx, msgs []postroom.Message) ([]postroom.Result, error) {
	if err := checkTx(tx); err != nil {
		return nil, err
	}
	if msgs == nil {
		return nil, &postroom.ArgumentError{Argument: "messages", Reason: "are nil"}
	}
	puts := make([]Put, len(msgs))
	for i := range msgs {
		if msgs[i].Malformed != "" {
			// Its death could be told only after a commit that is not ours.
			return nil, nth(msgs, i, &postroom.ArgumentError{Argument: "message", Reason: "is malformed, it can't be received in a transaction"})
		}
		puts[i] = Put{Mode: Queue, Message: msgs[i], Keep: b.opts.KeepContent}
		if err := b.Prepare(&puts[i]); err != nil {
			return nil, nth(msgs, i, err)
		}
	}
	if len(puts) == 0 {
		return []postroom.Result{}, nil
	}
	put, err := b.queue(ctx, tx, puts)
	if err != nil {
		return nil, err
	}
	results := make([]postroom.Result, len(put))
	for i := range put {
		results[i] = put[i].Result()
		if put[i].Err != nil {
			err = errors.Join(err, nth(msgs, i, put[i].Err))
		}
	}
	return results, err
}

// Take takes one message in by any mode and commits, with the error of its
// result.
func (b *Box) Take(ctx context.Context, p Put) (PutResult, error) {
	r, err := b.TakeTx(ctx, nil, &p)
	if r.Seq != 0 {
		b.ReportTaken(ctx, &p, &r, true)
	}
	return r, err
}

// TakeTx is Take inside a transaction. Report it after the commit.
func (b *Box) TakeTx(ctx context.Context, tx postroom.Tx, p *Put) (PutResult, error) {
	p.Keep = p.Keep || b.opts.KeepContent
	err := b.Prepare(p)
	if err == nil && p.Mode == Guard {
		if err = b.checkOwner(p.Owner); err == nil {
			err = b.checkLease(ctx, p.Lease)
		}
	}
	if err != nil {
		return PutResult{Err: err}, err
	}
	results, err := b.put(ctx, tx, []Put{*p})
	if err != nil {
		return PutResult{Err: err}, err
	}
	return results[0], results[0].Err
}

// Result is the part of it that callers see.
func (r *PutResult) Result() postroom.Result {
	return postroom.Result{Outcome: r.Outcome, State: r.State, Mismatch: r.Mismatch, Err: r.Err}
}

func checkTx(tx postroom.Tx) error {
	if tx == nil {
		return &postroom.ArgumentError{Argument: "transaction", Reason: "is nil"}
	}
	return nil
}

// Prepare checks a message and gives it the one form that stores keep. Doing so
// twice changes nothing.
func (b *Box) Prepare(p *Put) error {
	m := &p.Message
	p.Rules = b.rules()
	m.Consumer = b.consumer
	m.Attempt, m.Revision, m.LastError, m.Lease = 0, 0, "", postroom.Lease{}
	m.FirstSeen, m.LastSeen = time.Time{}, time.Time{}
	if m.Malformed != "" {
		if err := b.bury(p); err != nil {
			return err
		}
	}
	if err := m.Validate(p.Mode == Queue, b.opts.MaxPayload); err != nil {
		return err
	}
	if len(m.Hash) == 0 && b.opts.HashPayload && m.Payload != nil {
		sum := sha256.Sum256(m.Payload)
		m.Hash, m.HashAlg = sum[:], "sha256"
	}
	switch {
	case len(m.Hash) == 0:
		m.HashAlg = ""
	case m.HashAlg == "":
		m.HashAlg = "sha256"
	}
	for _, t := range []*time.Time{&m.DueAt, &m.ExpiresAt, &m.OccurredAt} {
		if !t.IsZero() {
			*t = t.UTC().Truncate(time.Microsecond)
		}
	}
	return nil
}

// bury prepares a message that could not be decoded. It is kept as far as it fits.
func (b *Box) bury(p *Put) error {
	m := &p.Message
	if p.Mode != Queue {
		return &postroom.ArgumentError{Argument: "message", Reason: "is malformed, it can only be received"}
	}
	p.Dead = postroom.ErrorText(m.Malformed)
	if most := cmp.Or(b.opts.MaxPayload, postroom.MaxPayload); len(m.Payload) > most {
		p.Dead = postroom.ErrorText(fmt.Sprintf("payload of %d bytes was cut to %d; %s", len(m.Payload), most, m.Malformed))
		m.Payload = m.Payload[:most:most]
	}
	m.Malformed, m.Group, m.DueAt, m.ExpiresAt = "", "", time.Time{}, time.Time{}
	return nil
}

// put calls the store.
func (b *Box) put(ctx context.Context, tx postroom.Tx, puts []Put) ([]PutResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	results, err := b.store.Put(ctx, tx, puts)
	return results, b.notPut(ctx, tx, puts, err)
}

// notPut reports messages that could not be put, for the given reason.
func (b *Box) notPut(ctx context.Context, tx postroom.Tx, puts []Put, err error) error {
	if err == nil {
		return nil
	}
	// A context that ended on the way leaves open whether the commit came first.
	if tx == nil && ctx.Err() != nil && !errors.Is(err, postroom.ErrUnknown) {
		err = fmt.Errorf("%w: %w", postroom.ErrUnknown, err)
	}
	err = fmt.Errorf("put into %s: %w", b.scope.Store, err)
	for i := range puts {
		b.observe.Received(ctx, b.received(&puts[i], postroom.Result{Err: err}))
	}
	return err
}

func (b *Box) received(p *Put, r postroom.Result) postroom.ReceivedEvent {
	return postroom.ReceivedEvent{Scope: b.scope, Message: &p.Message, Result: r, Mode: p.Mode.String()}
}

// queue puts messages that are to be handled later and reports them. Outside of
// a transaction, callers share commits.
func (b *Box) queue(ctx context.Context, tx postroom.Tx, puts []Put) ([]PutResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var (
		results []PutResult
		err     error
	)
	switch {
	case tx != nil:
		if results, err = b.put(ctx, tx, puts); err == nil {
			b.logBatch(ctx, puts, results)
		}
	case len(puts) >= flushMessages:
		results, err = b.flush(ctx, puts)
		err = b.notPut(ctx, tx, puts, err)
	default:
		results, err = b.intake.do(ctx, puts)
		err = b.notPut(ctx, tx, puts, err)
	}
	if err != nil {
		return nil, err
	}
	for i := range puts {
		b.ReportTaken(ctx, &puts[i], &results[i], tx == nil)
		b.LogMessage(ctx, "message received", &puts[i].Message, slog.String("outcome", results[i].Outcome.String()))
	}
	return results, nil
}

// flush commits messages, of one caller or several, and lets workers know.
func (b *Box) flush(ctx context.Context, puts []Put) ([]PutResult, error) {
	results, err := b.store.Put(ctx, nil, puts)
	if err != nil {
		return nil, err
	}
	b.wake(slices.ContainsFunc(puts, func(p Put) bool { return p.Message.Group != "" }))
	b.logBatch(ctx, puts, results)
	return results, nil
}

// logBatch logs what came in with one commit.
func (b *Box) logBatch(ctx context.Context, puts []Put, results []PutResult) {
	var counts [postroom.Dead + 1]int
	for i := range results {
		counts[results[i].Outcome]++
	}
	// A lone message is its own batch; its line says which it was.
	if len(puts) == 1 {
		if !b.opts.LogMessages && results[0].Err == nil {
			b.LogAbout(ctx, slog.LevelInfo, "message received", &puts[0].Message, slog.String("outcome", results[0].Outcome.String()))
		}
		return
	}
	attrs := []slog.Attr{slog.Int("messages", len(puts))}
	for o := postroom.Accepted; o <= postroom.Dead; o++ {
		if counts[o] > 0 {
			attrs = append(attrs, slog.Int(o.String(), counts[o]))
		}
	}
	b.log.LogAttrs(ctx, slog.LevelInfo, "messages received", attrs...)
}

var outcomeCounts = [...]string{"", CountAccepted, CountDuplicate, CountReplaced, CountConflict, CountReplaced}

// ReportTaken tells logs, totals and observers what came of taking a message in.
// Unless that is committed, an expired lease that it found has not ended yet.
func (b *Box) ReportTaken(ctx context.Context, p *Put, r *PutResult, committed bool) {
	m := &p.Message
	b.observe.Received(ctx, b.received(p, r.Result()))
	switch p.Mode {
	case Check:
		b.LogAbout(ctx, slog.LevelDebug, "duplicate check", m, slog.Bool("processed", r.Outcome == postroom.Duplicate))
	case Once, Guard:
		b.LogMessage(ctx, "message taken in", m, slog.String("mode", p.Mode.String()), slog.String("outcome", r.Outcome.String()))
	}
	name := outcomeCounts[r.Outcome]
	if p.Dead != "" && r.Outcome == postroom.Dead {
		// Nothing was replaced: it is new, which its death tells, or known.
		name = CountDuplicate
		if r.Died != "" {
			name = CountAccepted
		}
	}
	if name != "" && p.Mode != Check {
		b.count(m.Topic, name, 1)
	}
	if p.Mode == Once && r.Outcome == postroom.Accepted {
		b.count(m.Topic, CountDone, 1)
	}
	if r.Mismatch {
		b.LogAbout(ctx, slog.LevelWarn, "message is known with another hash", m)
		if r.Outcome != postroom.Conflict {
			b.count(m.Topic, CountConflict, 1)
		}
	}
	if p.Dead != "" && r.Outcome == postroom.Conflict {
		b.LogAbout(ctx, slog.LevelWarn, "message is known, its malformed delivery was left out", m, slog.String("error", p.Dead))
	}
	if r.Regrouped {
		b.LogAbout(ctx, slog.LevelWarn, "message is known in another group, which it keeps", m)
	}
	if r.Lost && committed {
		b.lost(ctx, m.Key(), m.Topic, 0)
	}
	if r.Died != "" && committed {
		b.died(ctx, m.Key(), m.Topic, r.Died, nil)
	}
}

var modeNames = [...]string{"", "check", "queue", "once", "guard"}

func (m Mode) String() string { return modeNames[m] }

package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// A Rule says what to do with an error that a handler returned. A verdict that
// the handler itself gave (Permanent, RetryAfter, Discard) comes before all
// rules.
type Rule struct {
	match    func(error) bool
	response Response
}

// On makes a rule for an error, by errors.Is.
func On(target error, do Response) Rule {
	return Rule{func(err error) bool { return errors.Is(err, target) }, do}
}

// OnType makes a rule for a type of error, by errors.As.
func OnType[E error](do Response) Rule {
	return Rule{func(err error) bool {
		var e E
		return errors.As(err, &e)
	}, do}
}

// OnMatch makes a rule for the errors that a function picks.
func OnMatch(match func(error) bool, do Response) Rule { return Rule{match, do} }

// A Response is what is done with a message whose handler failed.
type Response struct {
	verb    box.Verb
	discard bool
	backoff postroom.Backoff
}

// The responses without a setting.
var (
	// RetryNow runs it again at the next opportunity.
	RetryNow = RetryIn(0)
	// MakeDead gives up.
	MakeDead = Response{verb: box.Fail}
	// DiscardIt makes it Done without an effect.
	DiscardIt = Response{verb: box.Ack, discard: true}
	// PauseTopic keeps all workers from the topic until an operator resumes it.
	// The message waits with the others, at no cost.
	PauseTopic = Response{verb: box.Park}
)

// RetryIn runs it again after a fixed delay.
func RetryIn(d time.Duration) Response {
	return RetryWith(func(int) time.Duration { return d })
}

// RetryWith runs it again after the delay that a backoff gives.
func RetryWith(b postroom.Backoff) Response {
	return Response{verb: box.Abandon, backoff: b}
}

// errTimeout is the cause of a handler's context that ended because it took too
// long.
var errTimeout = errors.New("handler took too long")

// notRunDelay lets a store that could not begin a transaction recover.
const notRunDelay = time.Second

// settlement decides what becomes of a message by its handler's verdict.
func (d *dispatcher) settlement(ctx context.Context, r *route, m *postroom.Message, verdict error) box.Settlement {
	v, delay, _ := postroom.VerdictOf(verdict)
	if v != postroom.VerdictDone && v != postroom.VerdictDiscard {
		var begin *notRun
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, box.ErrStopping), errors.Is(cause, postroom.ErrLeaseLost), errors.Is(verdict, postroom.ErrLeaseLost):
			// It was kept from finishing, which is no failure of its own.
			return box.Settlement{Verb: box.Release}
		case errors.As(verdict, &begin):
			d.in.box.LogAbout(ctx, slog.LevelWarn, "handler not run", m, slog.Any("error", begin.error))
			return box.Settlement{Verb: box.Release, Delay: notRunDelay}
		case errors.Is(cause, errTimeout):
			verdict = fmt.Errorf("%w: %w", errTimeout, verdict)
		}
	}
	s := box.SettlementOf(r.opts.Name, verdict)
	switch v {
	case postroom.VerdictRetryAfter:
		return d.retry(s, r, m, verdict, RetryIn(delay))
	case postroom.VerdictRetry:
		return d.respond(ctx, s, r, m, verdict)
	}
	return s
}

// respond applies the rules of the route, then those of the worker.
func (d *dispatcher) respond(ctx context.Context, s box.Settlement, r *route, m *postroom.Message, verdict error) box.Settlement {
	for _, rules := range [][]Rule{r.opts.Rules, d.opts.Rules} {
		for _, rule := range rules {
			if rule.match(verdict) {
				return d.apply(ctx, s, r, m, verdict, rule.response)
			}
		}
	}
	return d.retry(s, r, m, verdict, d.byDefault(r))
}

// byDefault is what is done with an error that no rule is for.
func (d *dispatcher) byDefault(r *route) Response {
	if r.opts.Backoff != nil {
		return RetryWith(r.opts.Backoff)
	}
	return RetryWith(d.opts.Backoff)
}

func (d *dispatcher) apply(ctx context.Context, s box.Settlement, r *route, m *postroom.Message, verdict error, do Response) box.Settlement {
	switch {
	case do.discard:
		s.Verb, s.Discarded, s.Note = box.Ack, true, verdict.Error()
	case do.verb == box.Fail:
		s.Verb, s.Error = box.Fail, verdict.Error()
	case do.verb == box.Park:
		if err := d.pause(ctx, m.Topic, verdict); err != nil {
			d.in.box.Logger().ErrorContext(ctx, "topic not paused", "topic", m.Topic, "error", err)
			return d.retry(s, r, m, verdict, d.byDefault(r))
		}
		s.Verb = box.Park
	default:
		return d.retry(s, r, m, verdict, do)
	}
	return s
}

// retry lets the message wait for its next run, unless this was the last.
func (d *dispatcher) retry(s box.Settlement, r *route, m *postroom.Message, verdict error, do Response) box.Settlement {
	runs := m.Attempt + 1
	s.Error = verdict.Error()
	if runs >= cmp.Or(r.opts.MaxAttempts, d.opts.MaxAttempts) {
		s.Verb = box.Fail
		return s
	}
	s.Verb, s.Delay = box.Abandon, box.Soon(do.backoff(runs))
	return s
}

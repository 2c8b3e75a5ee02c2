package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// putNew takes in what is new with a single statement, where the dialect has
// one, answers what changes nothing from a plain read, and gives the rest, also
// with an error.
func (s *Store) putNew(ctx context.Context, round []intake) ([]intake, error) {
	queued := !slices.ContainsFunc(round, func(in intake) bool { return in.put.Mode != box.Queue || in.put.Dead != "" })
	name := "receive"
	if slices.ContainsFunc(round, func(in intake) bool { return in.put.Message.Group != "" }) {
		name = "receive_grouped"
	}
	if !queued || !(&session{store: s}).single(name) {
		return round, nil
	}
	if name == "receive" && s.hopes(round) {
		err := s.receiveNew(ctx, round)
		class := s.dialect.Classify(err)
		if class == Refused || class == Busy {
			s.hope.dash()
		}
		if class != Refused {
			return s.slowly(round, err)
		}
	}
	rows := s.receivedRows(round)
	if fitting(rows, s.dialect.BatchBytes) < len(rows) {
		return round, nil
	}
	var known map[postroom.Key]intake
	err := s.one(ctx, "put", func(q *session) (err error) {
		known, err = q.receive(ctx, name, rows, round)
		return err
	})
	if len(known) > 0 {
		s.hope.dash()
	}
	if err != nil {
		return s.slowly(round, err)
	}
	if len(known) == 0 {
		return nil, nil
	}
	var stale []intake
	err = s.read("put", func(q *session) error {
		found, err := q.lookup(ctx, keysOf(known))
		if err != nil {
			return err
		}
		stale = unnoted(answerAll(round, known, found), found)
		return nil
	})
	// They are answered, whether or not it can be noted when they were seen.
	_ = s.touch(ctx, stale)
	return slices.DeleteFunc(slices.Clone(round), func(in intake) bool {
		_, open := known[in.put.Message.Key()]
		return !open
	}), err
}

// slowly gives what is left after an error of one statement that several may not
// have, and the error otherwise.
func (s *Store) slowly(round []intake, err error) ([]intake, error) {
	if err == nil {
		return nil, nil
	}
	switch s.dialect.Classify(err) {
	case Busy:
		return round, nil
	case Unsupported:
		s.stepwise.Store(true)
		return round, nil
	}
	return round, err
}

// unnoted are those whose last_seen is due to be noted again.
func unnoted(answered []intake, all map[postroom.Key]*found) []intake {
	return slices.DeleteFunc(answered, func(in intake) bool {
		f := all[in.put.Message.Key()]
		var seen time.Time
		if f.done != nil {
			seen = f.done.LastSeen
		} else {
			seen = f.work.LastSeen
		}
		return f.now.Sub(seen) < time.Second
	})
}

// touch is session.touch by itself: in a transaction where that takes two steps.
func (s *Store) touch(ctx context.Context, round []intake) error {
	if len(round) == 0 {
		return nil
	}
	touch := func(q *session) error { return q.touch(ctx, round) }
	if (&session{store: s}).has("stale_work") {
		return s.write(ctx, "put", touch)
	}
	return s.read("put", touch)
}

// answerAll gives the results of those that change nothing, takes them out of
// known, and gives them.
func answerAll(round []intake, known map[postroom.Key]intake, all map[postroom.Key]*found) (answered []intake) {
	for _, in := range round {
		key := in.put.Message.Key()
		f := all[key]
		if f == nil || (f.work == nil && f.done == nil) {
			continue
		}
		result, change := in.put.Decide(f.known(), f.now)
		if change.Fate != box.Untouched || change.AdoptHash {
			continue
		}
		*in.result = result
		in.result.Seq = f.seq
		delete(known, key)
		answered = append(answered, in)
	}
	return answered
}

// receive stores the messages that are new, with their work, gives them their
// results, and gives the others.
func (q *session) receive(ctx context.Context, name string, rows [][]any, round []intake, more ...any) (known map[postroom.Key]intake, err error) {
	var (
		numbers, used string
		some          bool
		now           time.Time
	)
	err = q.each(ctx, name, rows, func(r Rows) error {
		return r.Scan((*textCell)(&numbers), (*textCell)(&used), (*boolCell)(&some), (*timeCell)(&now))
	}, more...)
	if err != nil {
		return nil, err
	}
	seqs, err := parseNumbers(numbers)
	for q.store.dialect.Span > 0 && len(seqs) > 0 && len(seqs) < len(round) {
		seqs = append(seqs, seqs[len(seqs)-1]+1)
	}
	if err == nil && len(seqs) != len(round) {
		err = fmt.Errorf("%d numbers for %d messages", len(seqs), len(round))
	}
	var fresh map[int64]bool
	if err == nil && some {
		fresh, err = parseSet(used)
	}
	if err != nil {
		return nil, fmt.Errorf("receive: %w", err)
	}
	if some {
		known = map[postroom.Key]intake{}
	}
	for i, in := range round {
		if some && !fresh[seqs[i]] {
			known[in.put.Message.Key()] = in
			continue
		}
		*in.result, _ = in.put.Arrive(seqs[i], now)
	}
	return known, nil
}

// receivedRows are the rows of the statement receive, in the order of their
// keys. The first value is the place in the round.
func (s *Store) receivedRows(round []intake) [][]any {
	text := textValue
	if s.dialect.Fill != nil { // rows, not columns that may be all NULL
		text = func(t string) any { return t }
	}
	var consumer, source, topic boxed
	rows := make([][]any, len(round))
	values := make([]any, 0, 16*len(round))
	for i, in := range round {
		m := &in.put.Message
		values = append(
			values, int64(i+1), consumer.of(m.Consumer), source.of(m.Source), m.ID, text(m.Group), topic.of(m.Topic), bytesValue(m.Payload), headersText(m.Headers),
			bytesValue(m.Hash), text(m.HashAlg), bytesValue(in.put.Digest()),
			timeValue(m.DueAt), timeValue(m.ExpiresAt), timeValue(m.OccurredAt), text(m.CorrelationID), text(m.CausationID),
		)
		rows[i] = values[16*i : len(values) : len(values)]
	}
	sortByKey(rows)
	return rows
}

// textValue is NULL for an empty text.
func textValue(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// sortByKey orders rows by consumer, source and id, their second to fourth value.
func sortByKey(rows [][]any) {
	slices.SortFunc(rows, func(a, b []any) int {
		return cmp.Or(cmp.Compare(a[1].(string), b[1].(string)), cmp.Compare(a[2].(string), b[2].(string)), cmp.Compare(a[3].(string), b[3].(string)))
	})
}

// parseNumbers reads numbers with commas in between.
func parseNumbers(text string) ([]int64, error) {
	if text == "" {
		return nil, nil
	}
	numbers := make([]int64, 0, strings.Count(text, ",")+1)
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

func parseSet(text string) (map[int64]bool, error) {
	numbers, err := parseNumbers(text)
	set := make(map[int64]bool, len(numbers))
	for _, n := range numbers {
		set[n] = true
	}
	return set, err
}

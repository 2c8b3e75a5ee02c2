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
	if !queued || !(&session{store: s}).has("receive") {
		return round, nil
	}
	var known map[postroom.Key]intake
	err := s.one(ctx, "put", func(q *session) error {
		known = byKeys(round)
		return q.receive(ctx, round, known)
	})
	if err != nil {
		if s.dialect.Classify(err) == Busy {
			return round, nil
		}
		return round, err
	}
	if len(known) == 0 {
		return nil, nil
	}
	err = s.read("put", func(q *session) error {
		found, err := q.lookup(ctx, keysOf(known))
		if err != nil {
			return err
		}
		// They are answered, whether or not it can be noted when they were seen.
		_ = q.touch(ctx, answerAll(round, known, found))
		return nil
	})
	return slices.DeleteFunc(slices.Clone(round), func(in intake) bool {
		_, open := known[in.put.Message.Key()]
		return !open
	}), err
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

// receive stores the messages that are new, with their work, takes them out of
// known, and gives them their results.
func (q *session) receive(ctx context.Context, round []intake, known map[postroom.Key]intake) error {
	var (
		numbers, used string
		some          bool
		now           time.Time
	)
	name := "receive"
	if slices.ContainsFunc(round, func(in intake) bool { return in.put.Message.Group != "" }) {
		name = "receive_grouped"
	}
	err := q.each(ctx, name, receivedRows(round), func(r Rows) error {
		return r.Scan((*textCell)(&numbers), (*textCell)(&used), (*boolCell)(&some), (*timeCell)(&now))
	})
	if err != nil {
		return err
	}
	seqs, err := parseNumbers(numbers)
	if err == nil && len(seqs) != len(round) {
		err = fmt.Errorf("%d numbers for %d messages", len(seqs), len(round))
	}
	var fresh map[int64]bool
	if err == nil && some {
		fresh, err = parseSet(used)
	}
	if err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	for i, in := range round {
		if some && !fresh[seqs[i]] {
			continue
		}
		*in.result, _ = in.put.Arrive(seqs[i], now)
		delete(known, in.put.Message.Key())
	}
	return nil
}

// receivedRows are the rows of the statement receive, in the order of their
// keys. The first value is the place in the round.
func receivedRows(round []intake) [][]any {
	rows := make([][]any, len(round))
	for i, in := range round {
		m := in.put.Message
		rows[i] = []any{
			int64(i + 1), m.Consumer, m.Source, m.ID, textValue(m.Group), m.Topic, bytesValue(m.Payload), headersText(m.Headers),
			bytesValue(m.Hash), textValue(m.HashAlg), bytesValue(in.put.Digest()),
			timeValue(m.DueAt), timeValue(m.ExpiresAt), timeValue(m.OccurredAt), textValue(m.CorrelationID), textValue(m.CausationID),
		}
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

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// A figure is one number that a scenario gives for each system.
type figure struct {
	name string
	unit string
	// lower: less is better.
	lower bool
	goals []goal
}

// A scenario measures its figures for one system after the other, round by
// round, so that whatever else the machine does meets all of them.
type scenario struct {
	figures []figure
	// rounds is how often it is measured. 0: by the sizes, see eachRounds.
	rounds int
	// oneRiver: the settings of River make no difference here, or its defaults
	// wait for an hour. Tuned stands for both.
	oneRiver bool
	// measure gives one number per figure, or errNotApplicable.
	measure func(ctx context.Context, s system) ([]float64, error)
	// all measures all systems by itself instead, and gives samples by name.
	all func(ctx context.Context, systems []system, rounds int) (map[string][][]float64, error)
}

// errNotApplicable says that a system has nothing like it.
var errNotApplicable = errors.New("not applicable")

// A result is a figure with the median of each system, NaN where there is none.
type result struct {
	figure
	database string
	values   map[string]float64
}

// eachRounds gives each scenario its rounds: more to rates with goals.
func eachRounds(size sizes, list []scenario) []scenario {
	for i, sc := range list {
		if sc.rounds > 0 {
			continue
		}
		list[i].rounds = size.rounds
		if slices.ContainsFunc(sc.figures, func(f figure) bool { return len(f.goals) > 0 }) {
			list[i].rounds = size.goalRounds
		}
	}
	return list
}

// run measures a scenario on all systems.
func run(ctx context.Context, log io.Writer, database string, sc scenario, systems []system) ([]result, error) {
	if sc.oneRiver {
		systems = slices.DeleteFunc(slices.Clone(systems), func(s system) bool { return s.name() == riverDefault })
	}
	all := sc.all
	if all == nil {
		all = sc.interleave
	}
	begin := time.Now()
	_, _ = fmt.Fprintf(log, "%s %s, %s", begin.Format(time.TimeOnly), database, sc.figures[0].name)
	samples, err := all(ctx, systems, sc.rounds)
	_, _ = fmt.Fprintf(log, ": %.1f s\n", time.Since(begin).Seconds())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", sc.figures[0].name, err)
	}
	results := make([]result, len(sc.figures))
	for i, f := range sc.figures {
		results[i] = result{figure: f, database: database, values: map[string]float64{}}
		for _, s := range systems {
			results[i].values[s.name()] = median(column(samples[s.name()], i))
		}
	}
	return results, nil
}

// interleave measures one system after the other in each round.
func (sc scenario) interleave(ctx context.Context, systems []system, rounds int) (map[string][][]float64, error) {
	samples := map[string][][]float64{}
	skipped := map[string]bool{}
	for round := range rounds {
		for i := range systems {
			// Nobody is always the first.
			s := systems[(i+round)%len(systems)]
			if skipped[s.name()] {
				continue
			}
			values, err := sc.measure(ctx, s)
			if errors.Is(err, errNotApplicable) {
				skipped[s.name()] = true
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name(), err)
			}
			samples[s.name()] = append(samples[s.name()], values)
		}
	}
	return samples, nil
}

func column(rows [][]float64, i int) []float64 {
	var values []float64
	for _, row := range rows {
		if !math.IsNaN(row[i]) {
			values = append(values, row[i])
		}
	}
	return values
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}

// percentile gives the value below which a share of the sorted values lies.
func percentile(sorted []time.Duration, share float64) time.Duration {
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

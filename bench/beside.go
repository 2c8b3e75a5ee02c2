package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// besideConcurrency is how many messages are handled at once beside other rows.
const besideConcurrency = 100

// A sharer can work on the tables of another system, so that they are filled
// only once.
type sharer interface{ share(with system) system }

// beside drains a system next to rows that do not concern the drain, and the
// same system without them. It gives messages per second and the share of the
// second that the first reached.
func beside(size sizes, name string, kind rows, n int, p place) scenario {
	return scenario{
		figures: []figure{
			{name: name, unit: perSec},
			{name: name + ", against none", unit: share, goals: p.postgres(atLeast(85, "%"))},
		},
		rounds: size.besideRounds,
		all: func(ctx context.Context, systems []system, rounds int) (samples map[string][][]float64, err error) {
			filled, release, err := fillBeside(ctx, systems, kind, n)
			defer func() { err = errors.Join(err, release()) }()
			if err != nil {
				return nil, err
			}
			sc := scenario{measure: func(ctx context.Context, s system) ([]float64, error) {
				full, ok := filled[s.name()]
				if !ok {
					return nil, errNotApplicable
				}
				if err := s.reset(ctx); err != nil {
					return nil, err
				}
				empty, err := drainOnce(ctx, s, size, ready, work{concurrency: besideConcurrency})
				if err != nil {
					return nil, err
				}
				rate, err := drainOnce(ctx, full, size, ready, work{concurrency: besideConcurrency})
				return []float64{rate, 100 * rate / empty}, err
			}}
			return sc.interleave(ctx, systems, rounds)
		},
	}
}

// fillBeside makes a second database of each system that can have such rows.
// River's two settings differ in how they fetch, not in what lies in its table:
// the better one stands for both.
func fillBeside(ctx context.Context, systems []system, kind rows, n int) (filled map[string]system, release func() error, err error) {
	filled = map[string]system{}
	release = func() error { return nil }
	for _, s := range systems {
		if s.name() == "River default" {
			continue
		}
		if sharing, ok := s.(sharer); ok {
			filled[s.name()] = sharing.share(filled[ours])
			continue
		}
		side, err := s.beside(ctx)
		if err != nil {
			return nil, release, err
		}
		before := release
		release = func() error { return errors.Join(before(), side.close(ctx)) }
		if err := side.fill(ctx, kind, n); errors.Is(err, errNotApplicable) {
			continue
		} else if err != nil {
			return nil, release, fmt.Errorf("fill %s: %w", s.name(), err)
		}
		filled[s.name()] = side
	}
	return filled, release, nil
}

// held drains again and again while a snapshot is held open, so that nothing
// that was deleted can be cleared away, and gives the speed at the end of that
// time, also as a share of the speed before.
func held(size sizes, p place) scenario {
	name := fmt.Sprintf("drain, a snapshot held open for %s", size.snapshot)
	return scenario{
		figures: []figure{
			{name: name, unit: perSec},
			{name: name + ", against none", unit: share, goals: p.postgres(atLeast(70, "%"))},
		},
		rounds: size.besideRounds,
		all: func(ctx context.Context, systems []system, rounds int) (map[string][][]float64, error) {
			before, after := map[string][]float64{}, map[string][]float64{}
			var some []system
			for _, s := range systems {
				if s.name() == "River default" {
					continue
				}
				if err := s.reset(ctx); err != nil {
					return nil, err
				}
				some = append(some, s)
			}
			if err := drainRounds(ctx, size, some, rounds, before); err != nil {
				return nil, err
			}
			for _, s := range some {
				release, err := s.hold(ctx)
				if err != nil {
					return nil, err
				}
				defer release()
			}
			for begin := time.Now(); time.Since(begin) < size.snapshot || len(after[ours]) < rounds; {
				if err := drainRounds(ctx, size, some, 1, after); err != nil {
					return nil, err
				}
			}
			samples := map[string][][]float64{}
			for _, s := range some {
				last := after[s.name()][len(after[s.name()])-rounds:]
				rate := median(last)
				samples[s.name()] = [][]float64{{rate, 100 * rate / median(before[s.name()])}}
			}
			return samples, nil
		},
	}
}

func drainRounds(ctx context.Context, size sizes, systems []system, rounds int, rates map[string][]float64) error {
	for range rounds {
		for _, s := range systems {
			rate, err := drainOnce(ctx, s, size, ready, work{concurrency: besideConcurrency})
			if err != nil {
				return fmt.Errorf("%s: %w", s.name(), err)
			}
			rates[s.name()] = append(rates[s.name()], rate)
		}
	}
	return nil
}

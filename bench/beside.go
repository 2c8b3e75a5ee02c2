package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/sync/errgroup"
)

// besideConcurrency is how many messages are handled at once beside other rows.
const besideConcurrency = 100

// A sharer can work on the tables of another system, so that they are filled
// only once.
type sharer interface{ share(with system) system }

// A side is what lies beside a drain that it does not concern.
type side struct {
	name string
	kind rows
	n    int
}

// beside drains each system next to such rows, and the same system without
// them. It gives messages per second, and the share of the second that the first
// reached. The tables are filled while the leases of a killed worker expire,
// which takes no processor; so this gives the figure of killed, too.
func beside(size sizes, p place) scenario {
	sides := []side{
		{"done", finished, size.done},
		{"scheduled", scheduled, size.scheduled},
		{"queued behind one head", queued, size.queued},
	}
	var figures []figure
	for _, side := range sides {
		name := fmt.Sprintf("drain beside %s %s", count(side.n), side.name)
		figures = append(figures,
			figure{name: name, unit: perSec},
			figure{name: name + ", against none", unit: share, goals: p.postgres(atLeast(85, "%"))})
	}
	kill := figure{name: fmt.Sprintf("kill -9 of a worker → last of its %d handled (lease %s)", size.held, size.lease), unit: "s", lower: true}
	return scenario{
		figures:  append(figures, kill),
		rounds:   size.besideRounds,
		oneRiver: true,
		all: func(ctx context.Context, systems []system, rounds int) (samples map[string][][]float64, err error) {
			var (
				seconds map[string]float64
				filled  map[string][]system
				release func(context.Context) error
			)
			group, both := errgroup.WithContext(ctx)
			group.Go(func() (err error) {
				seconds, err = killed(both, size, systems)
				return err
			})
			group.Go(func() (err error) {
				filled, release, err = fillBeside(both, systems, sides)
				return err
			})
			err = group.Wait()
			defer func() { err = errors.Join(err, release(context.WithoutCancel(ctx))) }()
			if err != nil {
				return nil, err
			}
			sc := scenario{measure: func(ctx context.Context, s system) ([]float64, error) {
				return drainBeside(ctx, size, s, filled[s.name()])
			}}
			if samples, err = sc.interleave(ctx, systems, rounds); err != nil {
				return nil, err
			}
			for name, rows := range samples {
				for i := range rows {
					rows[i] = append(rows[i], math.NaN())
				}
				if took, ok := seconds[name]; ok {
					rows[0][len(rows[0])-1] = took
				}
			}
			return samples, nil
		},
	}
}

// drainBeside gives two numbers for each of the filled systems; there is none
// where the system knows no such rows.
func drainBeside(ctx context.Context, size sizes, s system, filled []system) ([]float64, error) {
	if err := s.reset(ctx); err != nil {
		return nil, err
	}
	none, err := drainOnce(ctx, s, size, ready, work{concurrency: besideConcurrency})
	if err != nil {
		return nil, err
	}
	var values []float64
	for _, full := range filled {
		rate := math.NaN()
		if full != nil {
			if rate, err = drainOnce(ctx, full, size, ready, work{concurrency: besideConcurrency}); err != nil {
				return nil, err
			}
		}
		values = append(values, rate, 100*rate/none)
	}
	return values, nil
}

// fillBeside gives each system a further database for each of the sides, nil
// where it can't have such rows. What is shared is filled once.
func fillBeside(ctx context.Context, systems []system, sides []side) (filled map[string][]system, release func(context.Context) error, err error) {
	filled = map[string][]system{}
	var made []system
	release = func(ctx context.Context) (err error) {
		for _, s := range made {
			err = errors.Join(err, s.close(ctx))
		}
		return err
	}
	group, filling := errgroup.WithContext(ctx)
	group.SetLimit(fillsAtOnce)
	for _, s := range systems {
		own := make([]system, len(sides))
		filled[s.name()] = own
		for i, side := range sides {
			if sharing, ok := s.(sharer); ok && len(filled[ours]) > 0 {
				own[i] = sharing.share(filled[ours][i])
				continue
			}
			other, err := s.beside(ctx)
			if err != nil {
				return nil, release, errors.Join(err, group.Wait())
			}
			made = append(made, other)
			own[i] = other
			group.Go(func() error {
				err := other.fill(filling, side.kind, side.n)
				if errors.Is(err, errNotApplicable) {
					own[i] = nil
					return nil
				}
				if err != nil {
					return fmt.Errorf("fill %s: %w", s.name(), err)
				}
				return nil
			})
		}
	}
	return filled, release, group.Wait()
}

// fillsAtOnce keeps two processors busy: a fill is the work of one or two.
const fillsAtOnce = 2

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
		rounds:   size.besideRounds,
		oneRiver: true,
		all: func(ctx context.Context, systems []system, rounds int) (map[string][][]float64, error) {
			before, after := map[string][]float64{}, map[string][]float64{}
			for _, s := range systems {
				if err := s.reset(ctx); err != nil {
					return nil, err
				}
			}
			if err := drainRounds(ctx, size, systems, rounds, before); err != nil {
				return nil, err
			}
			for _, s := range systems {
				release, err := s.hold(ctx)
				if err != nil {
					return nil, err
				}
				defer release()
			}
			for begin := time.Now(); time.Since(begin) < size.snapshot || len(after[ours]) < rounds; {
				if err := drainRounds(ctx, size, systems, 1, after); err != nil {
					return nil, err
				}
			}
			samples := map[string][][]float64{}
			for _, s := range systems {
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

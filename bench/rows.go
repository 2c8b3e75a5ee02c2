package main

import (
	"fmt"
	"strings"
)

const (
	perSec = "msg/s"
	ms     = "ms"
	share  = "% of empty"
)

const drainName = "drain, no-op handler, "

func (f figure) isDrain() bool { return strings.HasPrefix(f.name, drainName) }

// A place is the kind of database, by which the goals differ.
type place int

const (
	onPostgres place = iota
	onSQLite
	onMaria
)

// pick gives the goals of the place.
func (p place) pick(postgres, lite, maria []goal) []goal {
	return [][]goal{postgres, lite, maria}[p]
}

// postgres are goals that only PostgreSQL has.
func (p place) postgres(goals ...goal) []goal { return p.pick(goals, nil, nil) }

// scenarios are the rows of the table for one database.
func scenarios(size sizes, p place) []scenario {
	if p != onPostgres {
		size = size.smaller()
	}
	one := func(name string, goals ...goal) []figure { return []figure{{name: name, unit: perSec, goals: goals}} }
	list := []scenario{
		{figures: one("intake, 1 caller"), oneRiver: true, measure: intake(size, 1, 1, false)},
		{
			figures:  one("intake, 32 callers", p.pick([]goal{times(6, "River"), times(2, "bare SQL")}, []goal{times(6, "bare SQL")}, []goal{times(2, "bare SQL")})...),
			oneRiver: true, measure: intake(size, 32, 1, false),
		},
		{figures: one("intake, 256 callers", p.postgres(times(12, "River"))...), oneRiver: true, measure: intake(size, 256, 1, false)},
		{figures: one("intake, batches of 500", p.postgres(times(1, "River tuned"))...), measure: intake(size, 1, batch, false)},
		{figures: one("intake, 32 callers, 50 % duplicates"), oneRiver: true, measure: intake(size, 32, 1, true)},
	}
	for _, c := range []int{10, 100, 1000} {
		goals := p.pick([]goal{timesBestDrain(3), times(0.75, "bare SQL")}, []goal{times(0.5, "bare SQL")}, []goal{times(0.6, "bare SQL")})
		if c == 10 {
			goals = p.pick([]goal{times(3, "River"), times(0.75, "bare SQL")}, goals, goals)
		}
		list = append(list, scenario{
			figures: one(fmt.Sprintf("%s%d at once", drainName, c), goals...),
			measure: drain(size, ready, work{concurrency: c}),
		})
	}
	// A transaction per message takes long: no system gets through a third.
	slow := size
	slow.drain /= 3
	return eachRounds(size, append(list,
		scenario{figures: one("transactional handler, one insert, 32 at once"), measure: drain(slow, ready, work{concurrency: 32, inserting: true})},
		scenario{figures: one(fmt.Sprintf("grouped messages, %d groups, 100 at once", groups)), measure: drain(size, grouped, work{concurrency: 100})},
		scenario{
			figures: []figure{
				{name: "receive → handler starts, 200/s, p50", unit: ms, lower: true, goals: p.postgres(atMost(2, ms), noMoreThan("River"))},
				{name: "receive → handler starts, 200/s, p99", unit: ms, lower: true},
			},
			rounds: size.rounds, measure: latency(size, false),
		},
		scenario{
			figures: []figure{
				{name: "the same, received by another process, p50", unit: ms, lower: true, goals: p.postgres(noMoreThan("River"))},
				{name: "the same, received by another process, p99", unit: ms, lower: true},
			},
			rounds: size.rounds, measure: latency(size, true),
		},
		scenario{
			figures: []figure{{name: "bytes written per message", unit: "B", lower: true, goals: p.postgres(atMost(1350, "B"))}},
			rounds:  1, measure: durability(size),
		},
		beside(size, p),
		held(size, p),
		memory(size),
	))
}

// count writes a number of rows.
func count(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

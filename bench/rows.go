package main

import (
	"fmt"
	"strings"
	"time"
)

const (
	perSec = "msg/s"
	ms     = "ms"
	share  = "% of empty"
)

const drainName = "drain, no-op handler, "

func (f figure) isDrain() bool { return strings.HasPrefix(f.name, drainName) }

// scenarios are the rows of the table for one database. The goals are those of
// PostgreSQL or of SQLite.
func scenarios(size sizes, sqlite bool) []scenario {
	pick := func(postgres, lite []goal) []goal {
		if sqlite {
			return lite
		}
		return postgres
	}
	if sqlite {
		size.done, size.scheduled, size.queued = size.done/size.sqlite, size.scheduled/size.sqlite, size.queued/size.sqlite
		size.waiting, size.snapshot = size.waiting/size.sqlite, size.snapshot/time.Duration(size.sqlite)
	}
	one := func(name string, goals ...goal) []figure { return []figure{{name: name, unit: perSec, goals: goals}} }
	list := []scenario{
		{figures: one("intake, 1 caller"), measure: intake(size, 1, 1, false)},
		{
			figures: one("intake, 32 callers", pick([]goal{times(6, "River"), times(2, "bare SQL")}, []goal{times(6, "bare SQL")})...),
			measure: intake(size, 32, 1, false),
		},
		{figures: one("intake, 256 callers", pick([]goal{times(12, "River")}, nil)...), measure: intake(size, 256, 1, false)},
		{figures: one("intake, batches of 500", pick([]goal{times(1, "River tuned")}, nil)...), measure: intake(size, 1, batch, false)},
		{figures: one("intake, 32 callers, 50 % duplicates"), measure: intake(size, 32, 1, true)},
	}
	for _, c := range []int{10, 100, 1000} {
		goals := pick([]goal{timesBestDrain(3), times(0.75, "bare SQL")}, []goal{times(0.5, "bare SQL")})
		if c == 10 {
			goals = pick([]goal{times(3, "River"), times(0.75, "bare SQL")}, goals)
		}
		list = append(list, scenario{
			figures: one(fmt.Sprintf("%s%d at once", drainName, c), goals...),
			measure: drain(size, ready, work{concurrency: c}),
		})
	}
	return append(list,
		scenario{figures: one("transactional handler, one insert, 32 at once"), measure: drain(size, ready, work{concurrency: 32, inserting: true})},
		scenario{figures: one(fmt.Sprintf("grouped messages, %d groups, 100 at once", groups)), measure: drain(size, grouped, work{concurrency: 100})},
		scenario{
			figures: []figure{
				{name: "receive → handler starts, 200/s, p50", unit: ms, lower: true, goals: pick([]goal{atMost(2, ms), noMoreThan("River")}, nil)},
				{name: "receive → handler starts, 200/s, p99", unit: ms, lower: true},
			},
			measure: latency(size, false),
		},
		scenario{
			figures: []figure{
				{name: "the same, received by another process, p50", unit: ms, lower: true, goals: pick([]goal{noMoreThan("River")}, nil)},
				{name: "the same, received by another process, p99", unit: ms, lower: true},
			},
			measure: latency(size, true),
		},
		scenario{
			figures: []figure{{name: "bytes written per message", unit: "B", lower: true, goals: pick([]goal{atMost(1350, "B")}, nil)}},
			rounds:  1, measure: durability(size),
		},
		beside(size, fmt.Sprintf("drain beside %s done", count(size.done)), finished, size.done, pick),
		beside(size, fmt.Sprintf("drain beside %s scheduled", count(size.scheduled)), scheduled, size.scheduled, pick),
		beside(size, fmt.Sprintf("drain beside %s queued behind one head", count(size.queued)), queued, size.queued, pick),
		held(size, pick),
		scenario{
			figures: []figure{{name: fmt.Sprintf("kill -9 of a worker → last of its %d handled (lease %s)", size.held, size.lease), unit: "s", lower: true}},
			all:     killed(size),
		},
		scenario{
			figures: []figure{{name: fmt.Sprintf("memory of a worker, %s waiting", count(size.waiting)), unit: "MB", lower: true, goals: []goal{atMost(200, "MB")}}},
			rounds:  1, measure: memory(size),
		},
	)
}

// count writes a number of rows.
func count(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// workerCommand makes this program a worker that others can kill.
const workerCommand = "worker"

// A childOrder says what a worker in a process of its own is to do.
type childOrder struct {
	kind, dsn   string
	concurrency int
	lease       time.Duration
	// hold lets handlers never return.
	hold bool
}

// start runs the order in a child process. When it holds as many messages as
// its concurrency, it writes a line.
func (o childOrder) start(ctx context.Context) (*exec.Cmd, *bufio.Scanner, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	child := exec.CommandContext(ctx, program, workerCommand, o.kind, o.dsn,
		strconv.Itoa(o.concurrency), o.lease.String(), strconv.FormatBool(o.hold))
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	return child, bufio.NewScanner(out), child.Start()
}

// asWorker is what the child does.
func asWorker(ctx context.Context, args []string) error {
	if len(args) != 5 {
		return errors.New("a worker needs: kind, DSN, concurrency, lease, hold")
	}
	concurrency, err1 := strconv.Atoi(args[2])
	lease, err2 := time.ParseDuration(args[3])
	hold, err3 := strconv.ParseBool(args[4])
	s, err4 := attach(args[0], args[1])
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	out, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer out.close()
	var n atomic.Int64
	return out.work(ctx, work{
		concurrency: concurrency,
		lease:       lease,
		holding:     hold,
		settled:     func(int) {},
		started: func(message) {
			if !hold {
				return
			}
			if n.Add(1) == int64(concurrency) {
				fmt.Println("holding")
			}
			select {}
		},
	})
}

// killed lets a child hold messages, kills it, and gives the seconds until a
// worker that was there all the time has handled the last of them. It waits for
// leases to expire, so all systems do it at the same time.
func killed(ctx context.Context, size sizes, systems []system) (map[string]float64, error) {
	var mu sync.Mutex
	seconds := map[string]float64{}
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range systems {
		if s.name() == riverTuned && !size.patient {
			continue
		}
		group.Go(func() error {
			took, err := killOne(ctx, size, s)
			if errors.Is(err, errNotApplicable) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("%s: %w", s.name(), err)
			}
			mu.Lock()
			defer mu.Unlock()
			seconds[s.name()] = took.Seconds()
			return nil
		})
	}
	return seconds, group.Wait()
}

func killOne(ctx context.Context, size sizes, s system) (time.Duration, error) {
	if err := s.reset(ctx); err != nil {
		return 0, err
	}
	if err := s.fill(ctx, ready, size.held); err != nil {
		return 0, err
	}
	kind, dsn := s.child()
	child, lines, err := childOrder{kind: kind, dsn: dsn, concurrency: size.held, lease: size.lease, hold: true}.start(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = child.Wait() }()
	defer func() { _ = child.Process.Kill() }()
	// Ends the wait for a child that does not take them.
	impatience := time.AfterFunc(30*time.Second, func() { _ = child.Process.Kill() })
	if !lines.Scan() || !impatience.Stop() {
		return 0, errors.Join(errors.New("the child did not take all messages"), lines.Err())
	}
	out, err := s.open(ctx)
	if err != nil {
		return 0, err
	}
	defer out.close()
	t := newTally(size.held)
	stop := background(ctx, func(ctx context.Context) error {
		return out.work(ctx, work{concurrency: size.held, lease: size.lease, started: t.started, settled: t.settled})
	})
	begin := time.Now()
	if err := child.Process.Kill(); err != nil {
		return 0, err
	}
	select {
	case <-t.full:
	case <-time.After(10*size.lease + 3*time.Minute):
		err = fmt.Errorf("%d of %d were handled", t.n.Load(), size.held)
	}
	took := time.Since(begin)
	return took, errors.Join(err, stop())
}

// memory gives the most megabytes that a worker had while so many messages
// waited for it.
func memory(size sizes) scenario {
	waiting := []side{{"waiting", ready, size.waiting}}
	return scenario{
		figures:  []figure{{name: fmt.Sprintf("memory of a worker, %s waiting", count(size.waiting)), unit: "MB", lower: true, goals: []goal{atMost(200, "MB")}}},
		rounds:   1,
		oneRiver: true,
		all: func(ctx context.Context, systems []system, rounds int) (samples map[string][][]float64, err error) {
			filled, release, err := fillBeside(ctx, systems, waiting)
			defer func() { err = errors.Join(err, release(context.WithoutCancel(ctx))) }()
			if err != nil {
				return nil, err
			}
			sc := scenario{measure: func(ctx context.Context, s system) ([]float64, error) {
				most, err := memoryOf(ctx, size, filled[s.name()][0])
				return []float64{most}, err
			}}
			return sc.interleave(ctx, systems, rounds)
		},
	}
}

func memoryOf(ctx context.Context, size sizes, s system) (float64, error) {
	kind, dsn := s.child()
	child, _, err := childOrder{kind: kind, dsn: dsn, concurrency: 100}.start(ctx)
	if err != nil {
		return 0, err
	}
	time.Sleep(2 * size.span)
	most, err := peak(child.Process.Pid)
	_ = child.Process.Kill()
	_ = child.Wait()
	return most, err
}

// peak reads the most memory that a process ever had, in megabytes.
func peak(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, errNotApplicable
	}
	for line := range bytes.Lines(status) {
		var kilobytes float64
		if n, _ := fmt.Sscanf(string(line), "VmHWM: %f kB", &kilobytes); n == 1 {
			return kilobytes / 1024, nil
		}
	}
	return 0, errNotApplicable
}

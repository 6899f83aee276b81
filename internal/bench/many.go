package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/meshtask/consul-ecs/taskdef"
)

const (
	manyTasks    = 200
	startsOfMany = 5
	sleepProgram = "/sleep"
	sleepSeconds = "600"
	// settleTurns bounds the wait for the kernel, in turns of settleTime.
	settleTurns = 15
)

// crowd is what two hundred sleeps took, a value per round.
type crowd struct {
	processes, total, perTask, lost sample
	up, down                        sample
}

// manyFigure starts two hundred tasks of one container that sleeps, and as many
// plain sleeps. Memory is what the processes have, this one with the simulator
// in it among them, and what the kernel has more than before.
func manyFigure(s *stage) ([]row, error) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		return nil, err
	}
	var ours, plain crowd
	for turn := range s.repeat(startsOfMany) + 1 {
		if turn == 1 {
			ours, plain = crowd{}, crowd{} // the first warmed the caches
		}
		if err := s.sleepPlainly(sleep, &plain); err != nil {
			return nil, err
		}
		if err := s.sleepInTasks(sleep, &ours); err != nil {
			return nil, err
		}
	}
	what := fmt.Sprintf("localecs, %d tasks of a sleep: ", manyTasks)
	peer := fmt.Sprintf("%d plain sleeps", manyTasks)
	return []row{
		{what + "memory", megabytes, "", "2147 (2 GiB)", ours.total, []reference{{peer, plain.total}}},
		{what + "memory, a task", megabytes, "", "10.7", ours.perTask, []reference{{peer, plain.perTask}}},
		{what + "memory of processes alone", megabytes, "", "", ours.processes, []reference{{peer, plain.processes}}},
		{what + "fall of MemAvailable", megabytes, "", "", ours.lost, []reference{{peer, plain.lost}}},
		{what + "Run to all RUNNING", seconds, "", "", ours.up, []reference{{peer, plain.up}}},
		{what + "Stop to nothing left", seconds, "", "", ours.down, []reference{{peer, plain.down}}},
	}, nil
}

func (c *crowd) add(processes, kernel, lost float64, up, down time.Duration) {
	c.processes.add(processes)
	c.total.add(processes + kernel)
	c.perTask.add((processes + kernel) / manyTasks)
	c.lost.add(lost)
	c.up.add(seconds.of(up))
	c.down.add(seconds.of(down))
}

// sleepInTasks runs the tasks once. Their stop signal is KILL: sleep as PID 1
// ignores TERM and would be waited for.
func (s *stage) sleepInTasks(sleep string, c *crowd) error {
	before, err := s.settled()
	if err != nil {
		return err
	}
	e, err := s.ecs(map[string]string{sleepProgram: sleep}, "KILL")
	if err != nil {
		return err
	}
	defer e.Close()
	var defs []*taskdef.TaskDefinition
	for range manyTasks {
		defs = append(defs, sleeper())
	}
	up, err := s.up(e, defs)
	if err != nil {
		return err
	}
	with, err := s.settled()
	if err != nil {
		return err
	}
	down, err := s.down(e)
	if err != nil {
		return err
	}
	c.add(with.processes, with.kernel-before.kernel, before.available-with.available, up, down)
	return e.Close()
}

func sleeper() *taskdef.TaskDefinition {
	return definition(container("app", sleepProgram, sleepSeconds))
}

// sleepPlainly starts the programs by fork and exec.
func (s *stage) sleepPlainly(sleep string, c *crowd) error {
	before, err := s.settled()
	if err != nil {
		return err
	}
	start := time.Now()
	var children []*child
	for range manyTasks {
		one, err := s.start(nil, sleep, sleepSeconds)
		if err != nil {
			return err
		}
		children = append(children, one)
	}
	up := time.Since(start)
	with, err := s.settled()
	if err != nil {
		return err
	}
	start = time.Now()
	for _, one := range children {
		one.kill()
	}
	c.add(with.processes-before.processes, with.kernel-before.kernel, before.available-with.available, up, time.Since(start))
	return nil
}

// settled is the memory of now, after the kernel has caught up: what it frees
// after the end of many namespaces takes seconds.
func (s *stage) settled() (memory, error) {
	const change = 1 // MB
	last, err := kernelMemory()
	for range settleTurns {
		if err := errors.Join(err, s.pause(settleTime)); err != nil {
			return memory{}, err
		}
		before := last
		if last, err = kernelMemory(); err == nil && before-last < change {
			break
		}
	}
	return memoryNow(os.Getpid())
}

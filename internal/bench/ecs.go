package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/taskdef"
)

// image of all containers of a local ECS.
const ecsImage = "bench"

// startLimit bounds the start of all tasks of a local ECS, and their end.
const startLimit = 2 * time.Minute

// ecs is a local ECS of this process.
type ecs struct {
	*cluster.Cluster
	tasks []*cluster.Task

	mu sync.Mutex
	// running is when each task became RUNNING, by its name.
	running map[string]time.Time
}

// ecs opens a local ECS with one image of these programs, by their paths in
// it. stopSignal is the image's; empty is TERM.
func (s *stage) ecs(programs map[string]string, stopSignal string) (*ecs, error) {
	dir, err := os.MkdirTemp(s.dir, "ecs-")
	if err != nil {
		return nil, err
	}
	e := &ecs{running: map[string]time.Time{}}
	e.Cluster, err = cluster.Open(cluster.Options{
		Name: "bench", Region: region, Account: account, Dir: dir,
		Images:  map[string]runtime.Image{ecsImage: {Name: ecsImage, Programs: programs, StopSignal: stopSignal}},
		Observe: e.observe, Log: hclog.New(&hclog.LoggerOptions{Output: s.progress, Level: hclog.Error}),
	})
	if err != nil {
		return nil, fmt.Errorf("open a local ECS: %w", err)
	}
	s.onClose(func() { e.Close() })
	return e, nil
}

func (e *ecs) observe(ev cluster.Event) {
	if ev.Container != "" || ev.What != "status" || ev.Value != scheduler.StatusRunning {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running[ev.Task] = ev.At
}

// lastRunning is when the last of n tasks became RUNNING, false before.
func (e *ecs) lastRunning(n int) (last time.Time, all bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, at := range e.running {
		if at.After(last) {
			last = at
		}
	}
	return last, len(e.running) == n
}

// up starts the tasks and returns the time from the first Run to the last task
// RUNNING.
func (s *stage) up(e *ecs, defs []*taskdef.TaskDefinition) (time.Duration, error) {
	start := time.Now()
	for i, def := range defs {
		t, err := e.Run(taskName(i), def)
		if err != nil {
			return 0, err
		}
		e.tasks = append(e.tasks, t)
	}
	_, err := s.until(fmt.Sprintf("%d tasks are RUNNING", len(defs)), time.Millisecond, startLimit, func() bool {
		_, all := e.lastRunning(len(defs))
		return all
	})
	last, _ := e.lastRunning(len(defs))
	return last.Sub(start), err
}

// down stops all tasks and returns the time until nothing of them is left.
func (s *stage) down(e *ecs) (time.Duration, error) {
	start := time.Now()
	for _, t := range e.tasks {
		t.Stop(scheduler.StopUserInitiated, "measured")
	}
	limit := time.After(startLimit)
	for i, t := range e.tasks {
		select {
		case <-t.Done():
		case <-s.ctx.Done():
			return 0, s.ctx.Err()
		case <-limit:
			return 0, fmt.Errorf("task %s did not stop in %s", taskName(i), startLimit)
		}
	}
	return time.Since(start), nil
}

func taskName(i int) string { return fmt.Sprintf("task-%03d", i) }

// container is one of a local ECS.
func container(name string, command ...string) taskdef.Container {
	return taskdef.Container{Name: name, Image: ecsImage, EntryPoint: command}
}

// definition is a task of these containers.
func definition(containers ...taskdef.Container) *taskdef.TaskDefinition {
	return &taskdef.TaskDefinition{Family: "bench", NetworkMode: "awsvpc", CPU: "256", Memory: "512", ContainerDefinitions: containers}
}

package scenario

import (
	"errors"
	"maps"
	"slices"

	"github.com/meshtask/consul-ecs/localecs/cluster"
)

// errEnded means that End has ended the run.
var errEnded = errors.New("ended by localecs stop -all: all tasks have stopped, and the checks were not evaluated")

// LiveRun is a run for those who control it from outside. It may be used also when
// the run has ended.
type LiveRun struct{ r *runner }

// Name returns the name of the scenario.
func (l LiveRun) Name() string { return l.r.file.Name }

// Region returns the run's ECS.
func (l LiveRun) Region() *cluster.Region { return l.r.ecs.region }

// MayEnd declares that a task may end from now on.
func (l LiveRun) MayEnd(task string) { l.r.tasks.mayEnd(task) }

// Planned returns the tasks and services that may still start.
func (l LiveRun) Planned() []string {
	names := slices.Collect(maps.Keys(l.r.file.Tasks))
	names = slices.AppendSeq(names, maps.Keys(l.r.file.Services))
	names = slices.DeleteFunc(names, func(name string) bool { return l.r.tasks.clusterTask(name) != nil })
	slices.Sort(names)
	return names
}

// Consul returns the server's HTTP API in the cluster's network, its management token, and how many
// instances of each service it sends traffic to. ok is false before there is one.
func (l LiveRun) Consul() (address, token string, passing map[string]int, ok bool) {
	l.r.mu.Lock()
	consul := l.r.consul
	l.r.mu.Unlock()
	if consul == nil {
		return "", "", nil, false
	}
	checks, _ := consul.watch.Now()
	passing = map[string]int{}
	for _, t := range l.r.tasks.Started() {
		if checks.InTraffic(t.ID()) {
			passing[t.Definition.Family]++
		}
	}
	return consulAddress(&l.r.file.Consul), consul.token, passing, true
}

// End ends the steps, stops all tasks as StopTask does, and then the run, whose error is
// ErrEnded.
func (l LiveRun) End() { l.r.end(errEnded) }

// stopAll is the reason of the end of tasks that End stops.
const stopAll = "localecs stop -all"

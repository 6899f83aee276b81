package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// Limits of a script's waits. Package chaos judges how long tasks take to start or
// recover; these end a run in which they do not.
const (
	startLimit = 3 * time.Minute
	calmLimit  = 2 * time.Minute
	// calm is how many seconds of traffic there are after everything serves again.
	calm = 2
)

// scenario returns the scenario of a schedule: start all, send traffic, the schedule's
// events at their times, wait until everything serves again, stop all.
func (s *ChaosSetup) scenario(sched chaos.Schedule) *file.Scenario {
	base := *s.base
	base.Seed = sched.Seed
	base.Tasks = maps.Clone(s.base.Tasks)
	first, all := s.tasks(sched, base.Tasks)
	base.Steps = []file.Step{{Start: first}}
	base.Steps = append(base.Steps, serving(first, startLimit)...)
	traffic := s.traffic
	base.Steps = append(base.Steps, file.Step{Traffic: &traffic})
	base.Steps = append(base.Steps, s.steps(sched)...)
	if len(sched.Faults()) > 0 {
		base.Steps = append(base.Steps,
			file.Step{Await: &file.Await{FaultsOver: true, Within: sched.For + calmLimit}})
	}
	base.Steps = append(base.Steps, file.Step{At: &sched.For, Await: &file.Await{Requests: 1, Within: calmLimit}})
	base.Steps = append(base.Steps, serving(sched.Survivors(s.Topology), calmLimit)...)
	base.Steps = append(base.Steps,
		file.Step{Await: &file.Await{Requests: calm * traffic.Rate, Within: calmLimit}},
		file.Step{EndTraffic: &file.EndTraffic{}},
		file.Step{Stop: &file.Stop{Tasks: all}})
	return &base
}

// serving awaits that each of the tasks is in the traffic.
func serving(tasks []string, within time.Duration) []file.Step {
	var steps []file.Step
	yes := true
	for _, name := range tasks {
		steps = append(steps, file.Step{Await: &file.Await{Task: name, InTraffic: &yes, Within: within}})
	}
	return steps
}

// tasks returns the names of the initial tasks, and of all. Replacements are added to
// tasks.
func (s *ChaosSetup) tasks(sched chaos.Schedule, tasks map[string]file.Task) (first, all []string) {
	for _, t := range s.Topology.Tasks {
		first = append(first, t.Name)
	}
	all = slices.Clone(first)
	for _, e := range sched.Events {
		if e.By != "" {
			tasks[e.By] = tasks[e.Instead]
			all = append(all, e.By)
		}
	}
	for name := range tasks {
		if !slices.Contains(all, name) {
			delete(tasks, name)
		}
	}
	return first, all
}

// steps returns the steps of the events, in the order of time: one with all faults,
// which have their own times, then the other events.
func (s *ChaosSetup) steps(sched chaos.Schedule) []file.Step {
	begin := time.Duration(0)
	var steps []file.Step
	for _, e := range sched.Events {
		at, end := e.At, e.End()
		if e.By != "" {
			steps = append(steps, file.Step{At: &at, Start: []string{e.By}})
		}
		switch {
		case e.Stop != "":
			steps = append(steps, file.Step{At: &at, Stop: &file.Stop{Tasks: []string{e.Stop}, Background: true}})
		case e.Unhealthy != "":
			t := sched.Task(s.Topology, e.Unhealthy)
			steps = append(steps,
				file.Step{At: &at, Post: &file.Get{Task: e.Unhealthy, URL: t.Fail}},
				file.Step{At: &end, Post: &file.Get{Task: e.Unhealthy, URL: t.Heal}})
		}
	}
	slices.SortStableFunc(steps, func(a, b file.Step) int { return cmp.Compare(*a.At, *b.At) })
	if faults := sched.Faults(); len(faults) > 0 {
		steps = slices.Insert(steps, 0, file.Step{At: &begin, Faults: faults})
	}
	return steps
}

// YAML returns a schedule as part of a scenario file: it replaces seed, tasks and
// steps.
func (s *ChaosSetup) YAML(sched chaos.Schedule) (string, error) {
	base := s.scenario(sched)
	var b strings.Builder
	fmt.Fprintf(&b, "seed: %d\ntasks:\n", base.Seed)
	for _, name := range slices.Sorted(maps.Keys(base.Tasks)) {
		text, err := yaml.MarshalWithOptions(base.Tasks[name], yaml.Flow(true))
		if err != nil {
			return "", fmt.Errorf("write task %s: %w", name, err)
		}
		fmt.Fprintf(&b, "  %s: %s", name, text)
	}
	b.WriteString("steps:\n")
	for i, step := range base.Steps {
		text, err := yaml.MarshalWithOptions(step, yaml.Flow(true))
		if err != nil {
			return "", fmt.Errorf("write step %d: %w", i+1, err)
		}
		fmt.Fprintf(&b, "  - %s", text)
	}
	return b.String(), nil
}

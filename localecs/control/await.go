package control

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// Condition is a state that `localecs wait` waits for.
type Condition string

// The conditions of tasks: Running, Healthy and Stopped; and of services: Steady and Passing.
const (
	Running Condition = "running"
	Healthy Condition = "healthy"
	Stopped Condition = "stopped"
	Steady  Condition = "steady"
	Passing Condition = "passing"
)

// OfTasks reports whether the condition is one of tasks.
func (c Condition) OfTasks() bool { return c == Running || c == Healthy || c == Stopped }

// Target is a task or service that has to reach a condition.
type Target struct {
	Condition
	Name string
	// Count is the number of instances that Passing requires.
	Count int
}

// ParseTargets reads names, and for Passing NAME=NUMBER.
func ParseTargets(c Condition, words []string) ([]Target, error) {
	var targets []Target
	for _, word := range words {
		t := Target{Condition: c, Name: word, Count: 1}
		if name, number, ok := strings.Cut(word, "="); ok && c == Passing {
			n, err := strconv.Atoi(number)
			if err != nil || n < 1 {
				return nil, fmt.Errorf("%q: want SERVICE=NUMBER, of 1 or more", word)
			}
			t.Name, t.Count = name, n
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// result is the standing of one target.
type result struct {
	met bool
	// never is set when the target cannot be met any more.
	never bool
	// text describes a target that is not met.
	text string
	// task is the one that keeps it from being met, if known.
	task *Task
}

// Blame is a container whose log may explain an outcome; empty if there is none.
type Blame struct{ Task, Container string }

// Outcome is the standing of all targets.
type Outcome struct {
	// Met reports whether all targets are met, Over whether waiting longer is useless.
	Met, Over bool
	// Blame is the container that keeps the first target from being met.
	Blame Blame
	unmet []string
}

// Evaluate compares targets with a state.
func Evaluate(targets []Target, s State) Outcome {
	o := Outcome{Met: len(targets) > 0}
	for _, t := range targets {
		r := t.evaluate(s)
		if r.met {
			continue
		}
		o.Met, o.unmet = false, append(o.unmet, r.text)
		// After the end of the run nothing changes any more.
		o.Over = o.Over || r.never || s.Ended
		if r.task == nil || o.Blame.Container != "" {
			continue
		}
		if c := culprit(*r.task); c != "" {
			o.Blame = Blame{r.task.Name, c}
		}
	}
	o.Over = o.Over || o.Met
	return o
}

// Text describes all targets that are not met, after the reason unless that is empty.
func (o Outcome) Text(reason string) string {
	parts := o.unmet
	if reason != "" {
		parts = append([]string{reason}, parts...)
	}
	return strings.Join(parts, "; ")
}

// culprit returns the container that keeps a task from its condition: the first that failed, else one
// that is unhealthy, one that is not healthy yet, or the one whose exit ended the task.
func culprit(t Task) string {
	first := func(is func(Container) bool) (found *Container) {
		for i, c := range t.Containers {
			if !c.StartedAt.IsZero() && is(c) && (found == nil || c.FinishedAt.Before(found.FinishedAt)) {
				found = &t.Containers[i]
			}
		}
		return found
	}
	for _, c := range []*Container{
		first(func(c Container) bool { return c.ExitCode != nil && *c.ExitCode != 0 }),
		first(func(c Container) bool { return c.Health() == scheduler.HealthUnhealthy }),
		first(func(c Container) bool { return c.Health() == scheduler.HealthUnknown }),
		t.Decider(),
	} {
		if c != nil {
			return c.Name
		}
	}
	return ""
}

func (t Target) evaluate(s State) result {
	switch t.Condition {
	case Steady:
		return t.steady(s)
	case Passing:
		return t.passing(s)
	}
	tasks := s.Named(t.Name)
	for i := range tasks {
		if r := t.task(tasks[i]); !r.met {
			r.task = &tasks[i]
			return r
		}
	}
	if len(tasks) > 0 {
		return result{met: true}
	}
	r := result{text: s.Unknown(t.Name).Error(), never: s.hasPlan()}
	for _, name := range []string{t.Name, serviceOf(t.Name)} {
		if slices.Contains(s.Planned, name) || slices.ContainsFunc(s.Services, func(v shapes.Service) bool {
			return v.ServiceName == name
		}) {
			r.never = false // it may still start
		}
	}
	return r
}

// serviceOf returns the service whose tasks have names like this one, SERVICE-NUMBER.
func serviceOf(task string) string {
	i := strings.LastIndex(task, "-")
	if _, err := strconv.Atoi(task[i+1:]); err != nil || i < 0 {
		return task
	}
	return task[:i]
}

// task evaluates the target by one task.
func (t Target) task(of Task) result {
	r := result{text: describe(of), never: of.stopping()}
	switch t.Condition {
	case Stopped:
		r.met, r.never = of.Stopped(), false
	case Running:
		r.met = !of.StartedAt.IsZero()
	case Healthy:
		r.met = of.Healthy()
		if of.health() == "" && of.LastStatus == shapes.Running {
			r.text, r.never = of.Name+" has no health check: wait for -running", true
		}
	}
	return r
}

// describe returns a task's status and the containers that explain it.
func describe(t Task) string {
	text := t.Name + " is " + t.Status()
	if t.stopping() {
		return text + " (" + t.Why() + ")"
	}
	var details []string
	for _, c := range t.Containers {
		switch {
		case c.LastStatus == shapes.Stopped && c.ExitCode != nil && *c.ExitCode != 0:
			details = append(details, fmt.Sprintf("%s exited with %d", c.Name, *c.ExitCode))
		case c.Waiting != "":
			details = append(details, c.Name+" "+c.Waiting)
		}
	}
	if len(details) > 0 {
		text += " (" + strings.Join(details, ", ") + ")"
	}
	return text
}

func (t Target) steady(s State) result {
	var names []string
	for _, v := range s.Services {
		if v.ServiceName == t.Name {
			text := fmt.Sprintf("service %s: %d of %d running, %d pending, %s", t.Name, v.RunningCount, v.DesiredCount,
				v.PendingCount, Standing(v))
			steady, err := v.Steady()
			return result{met: steady, never: err != nil, text: text, task: failedTask(s, t.Name)}
		}
		names = append(names, v.ServiceName)
	}
	if s.hasPlan() && !slices.Contains(s.Planned, t.Name) {
		return result{text: NoSuch("service", t.Name, names).Error(), never: true}
	}
	return result{text: fmt.Sprintf("service %s does not exist yet", t.Name)}
}

// failedTask returns the last task of a service that failed or is not healthy.
func failedTask(s State, service string) *Task {
	for i, t := range slices.Backward(s.Tasks) {
		if t.of(service) && t.StopCode != scheduler.StopServiceScheduler && culprit(t) != "" {
			return &s.Tasks[i]
		}
	}
	return nil
}

func (t Target) passing(s State) result {
	if s.Consul == nil && s.Command == "serve" {
		return result{text: "localecs serve has no Consul server: -passing is for localecs run", never: true}
	}
	if s.Consul == nil {
		return result{text: "the Consul server has not started yet"}
	}
	n := s.Consul.Passing[t.Name]
	r := result{
		met: n >= t.Count, text: fmt.Sprintf("Consul sends traffic to %d of %d instances of %s", n, t.Count, t.Name),
	}
	for i, task := range s.Tasks {
		if task.Family() == t.Name && !task.Healthy() {
			r.task = &s.Tasks[i]
		}
	}
	return r
}

package control

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Condition is what is waited for.
type Condition string

// The conditions.
const (
	Running Condition = "running"
	Healthy Condition = "healthy"
	Stopped Condition = "stopped"
	Steady  Condition = "steady"
	Passing Condition = "passing"
)

// OfTasks reports whether it is about tasks; others are about services.
func (c Condition) OfTasks() bool { return c == Running || c == Healthy || c == Stopped }

// Wish is one name that is to be as the Condition says.
type Wish struct {
	Condition
	Name string
	// Count is how many instances are wanted, for passing.
	Count int
}

// Parse reads names, and numbers of instances where they may be.
func Parse(c Condition, words []string) ([]Wish, error) {
	var wishes []Wish
	for _, word := range words {
		w := Wish{Condition: c, Name: word, Count: 1}
		if name, number, ok := strings.Cut(word, "="); ok && c == Passing {
			n, err := strconv.Atoi(number)
			if err != nil || n < 1 {
				return nil, fmt.Errorf("%q: want SERVICE=NUMBER, of 1 or more", word)
			}
			w.Name, w.Count = name, n
		}
		wishes = append(wishes, w)
	}
	return wishes, nil
}

// answer is how a wish stands.
type answer struct {
	met bool
	// never says that it cannot come true any more.
	never bool
	// text is how it is, for people, when it is not met.
	text string
	// task is the one that it hangs on.
	task *Task
}

// Outcome is how all of them stand.
type Outcome []answer

// Judge says how the wishes stand in a state.
func Judge(wishes []Wish, s State) (all Outcome) {
	for _, w := range wishes {
		a := w.judge(s)
		a.never = a.never && !a.met
		all = append(all, a)
	}
	return all
}

// Met reports whether all have come true.
func (o Outcome) Met() bool {
	return len(o) > 0 && !slices.ContainsFunc(o, func(a answer) bool { return !a.met })
}

// Over reports whether there is no need to look again.
func (o Outcome) Over() bool {
	return o.Met() || slices.ContainsFunc(o, func(a answer) bool { return a.never })
}

// Text says of all that is not met how it is; why comes first, unless it is empty.
func (o Outcome) Text(why string) string {
	var parts []string
	if why != "" {
		parts = append(parts, why)
	}
	for _, a := range o {
		if !a.met {
			parts = append(parts, a.text)
		}
	}
	return strings.Join(parts, "; ")
}

// Blame is a container whose log may say why; empty when there is none.
type Blame struct{ Task, Container string }

// Blame is the first that something hangs on.
func (o Outcome) Blame() Blame {
	for _, a := range o {
		if a.met || a.task == nil {
			continue
		}
		if c := culprit(*a.task); c != "" {
			return Blame{a.task.Name, c}
		}
	}
	return Blame{}
}

// culprit is the container that is why a task is not as it is to be: of those that
// have failed the first, else one that is unhealthy, or not healthy so far, or has
// not come to run.
func culprit(t Task) string {
	var failed *Container
	for i, c := range t.Containers {
		if c.ExitCode != nil && *c.ExitCode != 0 && !c.StartedAt.IsZero() && (failed == nil || c.FinishedAt.Before(failed.FinishedAt)) {
			failed = &t.Containers[i]
		}
	}
	if failed != nil {
		return failed.Name
	}
	for _, status := range []string{"UNHEALTHY", "UNKNOWN"} {
		for _, c := range t.Containers {
			if c.HealthStatus == status && !c.StartedAt.IsZero() {
				return c.Name
			}
		}
	}
	if c := t.Decider(); c != nil {
		return c.Name
	}
	return ""
}

func (w Wish) judge(s State) answer {
	switch w.Condition {
	case Steady:
		return w.steady(s)
	case Passing:
		return w.passing(s)
	}
	tasks := s.Named(w.Name)
	if len(tasks) == 0 {
		return w.unknown(s)
	}
	all := answer{met: true}
	for i := range tasks {
		a := w.task(tasks[i])
		if !a.met {
			a.task = &tasks[i]
			a.never = a.never || s.Ended
			return a
		}
	}
	return all
}

// unknown is about a task that there is not: a plan reports whether it may come.
func (w Wish) unknown(s State) answer {
	a := answer{text: s.Unknown(w.Name).Error(), never: s.Ended}
	if !s.HasPlan() || slices.Contains(s.Planned, w.Name) {
		return a
	}
	// A service's tasks get numbers.
	if service, number, ok := cutLast(w.Name, "-"); ok {
		_, err := strconv.Atoi(number)
		known := slices.Contains(s.Planned, service) || slices.ContainsFunc(s.Services, func(v Service) bool { return v.Name == service })
		if err == nil && known {
			return a
		}
	}
	if slices.ContainsFunc(s.Services, func(v Service) bool { return v.Name == w.Name }) {
		return a // it has not started a task so far
	}
	a.never = true
	return a
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// task judges a wish about one task.
func (w Wish) task(t Task) answer {
	switch w.Condition {
	case Stopped:
		return answer{met: t.Stopped(), text: describe(t)}
	case Running:
		return answer{met: !t.StartedAt.IsZero(), text: describe(t), never: t.Stopping()}
	}
	if len(t.Checked()) == 0 && t.LastStatus == "RUNNING" {
		return answer{text: t.Name + " has no health check: wait for -running", never: true}
	}
	return answer{met: t.Healthy(), text: describe(t), never: t.Stopping()}
}

// describe says how a task is.
func describe(t Task) string {
	text := t.Name + " is " + t.Status()
	if t.Stopping() {
		return text + " (" + t.Why() + ")"
	}
	var details []string
	for _, c := range t.Containers {
		switch {
		case c.LastStatus == "STOPPED" && c.ExitCode != nil && *c.ExitCode != 0:
			details = append(details, fmt.Sprintf("%s exited with %d", c.Name, *c.ExitCode))
		case c.LastStatus != "RUNNING" && c.LastStatus != "STOPPED":
			details = append(details, c.Name+" "+c.LastStatus)
		case c.HealthStatus != "" && c.HealthStatus != "HEALTHY":
			details = append(details, c.Name+" "+c.HealthStatus)
		}
	}
	if len(details) > 0 {
		text += " (" + strings.Join(details, ", ") + ")"
	}
	return text
}

func (w Wish) steady(s State) answer {
	var names []string
	for _, v := range s.Services {
		if v.Name == w.Name {
			text := fmt.Sprintf("service %s: %d of %d running, %d pending, %s", v.Name, v.RunningCount, v.DesiredCount, v.PendingCount, v.Standing())
			return answer{met: v.Steady, never: v.Failed != "" || s.Ended, text: text, task: ailing(s, v.Name)}
		}
		names = append(names, v.Name)
	}
	if s.HasPlan() && !slices.Contains(s.Planned, w.Name) {
		return answer{text: NoSuch("service", w.Name, names).Error(), never: true}
	}
	return answer{text: fmt.Sprintf("service %s does not exist so far", w.Name), never: s.Ended}
}

// ailing is the last task of a service that has stopped by itself or is not
// healthy.
func ailing(s State, service string) *Task {
	for i, t := range slices.Backward(s.Tasks) {
		if t.Service == service && t.StopCode != "ServiceSchedulerInitiated" && culprit(t) != "" {
			return &s.Tasks[i]
		}
	}
	return nil
}

func (w Wish) passing(s State) answer {
	if s.Consul == nil {
		if s.Command == "serve" {
			return answer{text: "there is no Consul server in localecs serve: -passing is for localecs run", never: true}
		}
		return answer{text: "there is no Consul server so far", never: s.Ended}
	}
	n := s.Consul.Passing[w.Name]
	a := answer{met: n >= w.Count, text: fmt.Sprintf("Consul sends traffic to %d of %d instances of %s", n, w.Count, w.Name), never: s.Ended}
	for i, t := range s.Tasks {
		if t.Family == w.Name && !t.Healthy() {
			a.task = &s.Tasks[i]
		}
	}
	return a
}

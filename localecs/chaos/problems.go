package chaos

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Targets is what a schedule may be about.
type Targets struct {
	// Containers are those of each task, by name; none where they are not known.
	Containers map[string][]string
	// CheckSignal reports why a signal's name or number is not one.
	CheckSignal func(string) error
	// NoLinks: tasks share the host's network, and have no links to cut or to slow.
	NoLinks bool
}

// Problems returns the mistakes in faults, each with its place: faults[2].at.
func Problems(faults []Fault, w Targets) []error {
	var errs []error
	for i, f := range faults {
		for _, problem := range f.problems(w) {
			errs = append(errs, fmt.Errorf("faults[%d]%s", i, problem))
		}
	}
	return errs
}

func (f Fault) problems(w Targets) []string {
	var names, set []string
	for _, k := range f.kinds() {
		names = append(names, k.name)
		if k.set {
			set = append(set, k.name)
		}
	}
	if len(set) != 1 {
		return []string{
			fmt.Sprintf(": want exactly one of %s; got %s", strings.Join(names, ", "),
				strings.Join(append(set, "nothing else"), ", ")),
		}
	}
	kind := set[0]
	var problems []string
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if w.NoLinks && (f.Partition != nil || f.Link != nil) {
		add(".%s: tasks share the host's network: it takes awsvpc networking", kind)
	}
	if f.For > 0 && f.momentary() {
		add(".for: %s ends immediately", kind)
	}
	for _, name := range f.Tasks() {
		if _, known := w.Containers[name]; !known {
			add(".%s: there is no task %q", kind, name)
		}
	}
	f.valueProblems(func(format string, args ...any) { add("."+kind+format, args...) }, w)
	return problems
}

func (f Fault) valueProblems(add func(string, ...any), w Targets) {
	if p := f.Process(); p != nil {
		f.processProblems(*p, w, add)
	}
	switch {
	case f.Kill != nil:
		for _, problem := range f.Kill.Problems(w.CheckSignal) {
			add(".%s", problem)
		}
	case f.OOM != nil && f.OOM.Process != "":
		add(".process: memory ends the whole container")
	case f.Endpoint != nil:
		f.Endpoint.problems(add)
	case f.Spot != nil && f.Spot.Task == "":
		add(".task: want a task")
	case f.Server != "" && !slices.Contains([]string{Down, Frozen, Slowed}, f.Server):
		add(": %q: want down, frozen or slow", f.Server)
	case f.Partition != nil:
		f.Partition.problems(add)
	case f.Link != nil:
		f.Link.problems(add)
	}
}

// processProblems checks the target of a fault of processes. A kill may have no
// container.
func (f Fault) processProblems(p Process, w Targets, add func(string, ...any)) {
	if p.Task == "" {
		add(".task: want a task")
	}
	containers := w.Containers[p.Task]
	switch {
	case p.Container == "" && f.Kill != nil:
	case p.Container == "" && containers == nil:
		add(".container: want a container")
	case containers != nil && !slices.Contains(containers, p.Container):
		add(".container: %q: want one of %s", p.Container, strings.Join(containers, ", "))
	}
}

func (l Link) problems(add func(string, ...any)) {
	if l.Task == "" {
		add(".task: want a task")
	}
	if l.KBits < minKBits {
		add(".kbits: %d: want %d or more", l.KBits, minKBits)
	}
}

// Problems returns the mistakes in the kill's values, each after its key.
// checkSignal reports why a signal's name or number is not one.
func (k Kill) Problems(checkSignal func(string) error) []string {
	var problems []string
	if k.Container == "" && k.Process+k.Signal != "" {
		problems = append(problems,
			"container: process and signal need one: without it everything in the task is killed")
	}
	if strings.Contains(k.Process, "/") {
		problems = append(problems,
			fmt.Sprintf("process: %q: want the program's name without its directory", k.Process))
	}
	if k.Signal == "" {
		return problems
	}
	if err := checkSignal(k.Signal); err != nil {
		problems = append(problems, "signal: "+err.Error())
	}
	return problems
}

// minKBits is what a packet of full size still fits into.
const minKBits = 8

func (p Partition) problems(add func(string, ...any)) {
	if p.Task == "" {
		add(".task: want a task")
	}
	switch p.From {
	case "":
		add(".from: want a task, server or all")
	case p.Task:
		add(".from: %s cannot be partitioned from itself", p.Task)
	}
}

func (e Endpoint) problems(add func(string, ...any)) {
	names := endpoints()
	if !slices.Contains(names, e.Name) {
		add(".name: %q: want one of %s", e.Name, strings.Join(names, ", "))
	}
	if e.Task != "" && slices.Contains(names[3:], e.Name) {
		add(".task: %s is the same for all tasks", e.Name)
	}
	if e.Share < 0 || e.Share > 1 || e.Share != e.Share {
		add(".share: %v: want more than 0, at most 1", e.Share)
	}
	if e.effects() != 1 {
		add(": want exactly one of slow, hang, status, cut, wrong, skew, noTags")
	}
	e.effectProblems(add)
}

// effects counts the effects that are set.
func (e Endpoint) effects() int {
	n := 0
	for _, set := range []bool{e.Slow != 0, e.Hang, e.Status != 0, e.Cut, e.Wrong != "", e.Skew != 0, e.NoTags} {
		if set {
			n++
		}
	}
	return n
}

func (e Endpoint) effectProblems(add func(string, ...any)) {
	if e.Status != 0 && !slices.Contains([]int{429, 500, 503}, e.Status) {
		add(".status: %d: want 429, 500 or 503", e.Status)
	}
	if wrong := []string{Empty, Truncated, Page, Error}; e.Wrong != "" && !slices.Contains(wrong, e.Wrong) {
		add(".wrong: %q: want one of %s", e.Wrong, strings.Join(wrong, ", "))
	}
	if e.Skew != e.Skew.Truncate(time.Second) {
		add(".skew: %s: want whole seconds", e.Skew)
	}
	if e.NoTags && !slices.Contains([]string{IAM, ECS}, e.Name) {
		add(".noTags: %s has no tags: want iam or ecs", e.Name)
	}
}

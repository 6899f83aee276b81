package file

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// label is what a name may be that becomes the name of a directory: one path
// element, and no option or hidden file.
var label = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// problems are the mistakes that the syntax allows.
func (s *Scenario) problems() []error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch {
	case s.Name == "":
		add("name: must not be empty")
	case !label.MatchString(s.Name):
		add("name: %q: want letters, digits, _ . and -: it is the name of a directory", s.Name)
	}
	if s.StopOrder != "reverse" && s.StopOrder != "at-once" {
		add("stopOrder: %q: want reverse or at-once", s.StopOrder)
	}
	if len(s.Tasks) == 0 {
		add("tasks: at least one task definition is needed")
	}
	for name, definition := range s.Tasks {
		if !label.MatchString(name) {
			add("tasks: %q: want letters, digits, _ . and -: it is the name of a directory", name)
		}
		if definition == "" {
			add("tasks[%q]: want the task definition's file", name)
		}
	}
	if s.Images[s.Consul.Image] == nil {
		add("consul.image: %q is not in images", s.Consul.Image)
	}
	if s.Consul.Address == "" {
		add("consul.address: want the server's address, the last but one of subnet %s", s.Subnet)
	}
	return slices.Concat(errs, s.settingProblems(), s.stepsProblems())
}

// settingProblems are the mistakes in what every task needs.
func (s *Scenario) settingProblems() []error {
	var errs []error
	for name, i := range s.Images {
		if i == nil {
			errs = append(errs, fmt.Errorf("images[%q]: want programs", name))
		}
	}
	if _, err := netip.ParsePrefix(s.Subnet); err != nil {
		errs = append(errs, fmt.Errorf("subnet: %q: want a CIDR block such as 10.42.0.0/24", s.Subnet))
	}
	return errs
}

// stepsProblems follows the steps: what each needs must have been done before.
func (s *Scenario) stepsProblems() []error {
	var errs []error
	p := progress{running: map[string]bool{}}
	for i, step := range s.Steps {
		for _, err := range s.stepProblems(step, &p) {
			errs = append(errs, fmt.Errorf("steps[%d]: %w", i, err))
		}
	}
	return errs
}

// progress is what the steps so far have begun. A task is in running once it
// was started, with false once it was stopped.
type progress struct {
	running map[string]bool
	traffic bool
}

func (s *Scenario) stepProblems(step Step, p *progress) []error {
	kinds := step.kinds()
	if len(kinds) != 1 {
		return []error{fmt.Errorf("want exactly one of start, stop, await, mtls, post, traffic, endTraffic; got %s",
			strings.Join(append(kinds, "nothing else"), ", "))}
	}
	var errs []error
	add := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf(kinds[0]+": "+format, args...))
	}
	for _, name := range step.tasks() {
		running, started := p.running[name]
		switch _, known := s.Tasks[name]; {
		case !known:
			add("task %q is not in tasks", name)
		case step.Start != nil && started:
			add("task %q was started before", name)
		case step.Start == nil && !running:
			add("task %q is not running by then", name)
		}
		p.running[name] = step.Start != nil || step.Stop == nil && running
	}
	switch needed := step.EndTraffic || step.Await != nil && step.Await.Requests > 0; {
	case needed && !p.traffic:
		add("there is no traffic by then")
	case step.Traffic != nil && p.traffic:
		add("there is traffic already; end it first")
	}
	p.traffic = step.Traffic != nil || p.traffic && !step.EndTraffic
	step.valueProblems(add)
	return errs
}

// kinds are the names of the fields that are set.
func (s Step) kinds() []string {
	var names []string
	for _, kind := range []struct {
		name string
		set  bool
	}{
		{"start", s.Start != nil},
		{"stop", s.Stop != nil},
		{"await", s.Await != nil},
		{"mtls", s.MTLS != nil},
		{"post", s.Post != nil},
		{"traffic", s.Traffic != nil},
		{"endTraffic", s.EndTraffic},
	} {
		if kind.set {
			names = append(names, kind.name)
		}
	}
	return names
}

// tasks are the tasks that the step is about.
func (s Step) tasks() []string {
	switch {
	case s.Await != nil && s.Await.Task != "":
		return []string{s.Await.Task}
	case s.MTLS != nil:
		return []string{s.MTLS.Task}
	case s.Post != nil:
		return []string{s.Post.Task}
	case s.Traffic != nil:
		return []string{s.Traffic.Task}
	}
	return append(slices.Clone(s.Start), s.Stop...)
}

// valueProblems looks at each value by itself.
func (s Step) valueProblems(add func(string, ...any)) {
	port := func(n int) {
		if n < 1 || n > 65535 {
			add("port: %d: want 1 to 65535", n)
		}
	}
	switch {
	case s.Await != nil:
		s.Await.problems(add)
	case s.MTLS != nil:
		port(s.MTLS.Port)
		if s.MTLS.Service == "" {
			add("service: must not be empty")
		}
	case s.Post != nil:
		if u, err := url.Parse(s.Post.URL); err != nil || u.Scheme != "http" || u.Host == "" {
			add("url: %q: want one such as http://127.0.0.1:9090/path", s.Post.URL)
		}
	case s.Traffic != nil:
		port(s.Traffic.Port)
		if s.Traffic.Rate < 1 || s.Traffic.Rate > 1000 {
			add("rate: %d: want 1 to 1000 requests a second", s.Traffic.Rate)
		}
	}
}

func (a *Await) problems(add func(string, ...any)) {
	n := 0
	for _, set := range []bool{a.Service != "", a.Task != "", a.Requests > 0} {
		if set {
			n++
		}
	}
	if n != 1 {
		add("want exactly one of service, task, requests")
	}
	if a.Service != "" && a.Passing < 1 {
		add("service needs passing, 1 or more")
	}
	if a.Task != "" && (a.Container == "" || !slices.Contains([]string{"passing", "warning", "critical"}, a.Status)) {
		add("task needs container, and status passing, warning or critical")
	}
	if a.Within <= 0 {
		add("within: want a duration such as 60s: every wait has an end")
	}
}

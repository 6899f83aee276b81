package file

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// stepsProblems follows the steps: what each needs must have been done before.
func (s *Scenario) stepsProblems() []error {
	var errs []error
	p := progress{running: map[string]bool{}, phases: map[string]bool{}, faults: len(s.Faults) > 0}
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
	at      *time.Duration  // of the last step that has one
	phases  map[string]bool // by name
	faults  bool
}

func (s *Scenario) stepProblems(step Step, p *progress) []error {
	kinds := step.kinds()
	if len(kinds) != 1 {
		return []error{fmt.Errorf("want exactly one of start, stop, scale, deploy, kill, await, mtls, get, post, faults, traffic, endTraffic, pause; got %s",
			strings.Join(append(kinds, "nothing else"), ", "))}
	}
	var errs []error
	add := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf(kinds[0]+": "+format, args...))
	}
	switch {
	case step.At == nil:
	case *step.At < 0 || p.at != nil && *step.At < *p.at:
		add("at: %s: want a time from the first step that has one, and not before the last", *step.At)
	default:
		p.at = step.At
	}
	s.taskProblems(step, p, add)
	s.faultProblems(step, p, add)
	p.trafficProblems(step, add)
	step.valueProblems(add)
	switch a := step.Await; {
	case step.Stop != nil:
		s.leavesProblems(step.Stop.Leaves(), add)
	case a != nil:
		s.leavesProblems(a.Leaves(), add)
		if a.Tokens != nil && len(s.Checks.NoTokensOf) == 0 {
			add("tokens: checks.noTokensOf names no auth method: there is nothing to count")
		}
	}
	return errs
}

// leavesProblems looks at whether anybody looks for what is to stay.
func (s *Scenario) leavesProblems(l Leaves, add func(string, ...any)) {
	for _, method := range slices.Sorted(maps.Keys(l.Tokens)) {
		if !slices.Contains(s.Checks.NoTokensOf, method) {
			add("leavesTokens: auth method %q is not in checks.noTokensOf: nobody looks for its tokens", method)
		}
		if l.Tokens[method] == "" {
			add("leavesTokens[%q]: want the reason, which the report shows", method)
		}
	}
	if l.Agent != "" && !s.Checks.AgentsLeft {
		add("agentFails: checks.agentsLeft is not true: nobody looks at agents")
	}
}

// taskProblems looks at which tasks and services there are by now. A task of a
// service may be there as soon as its service is.
func (s *Scenario) taskProblems(step Step, p *progress, add func(string, ...any)) {
	ends := step.Stop != nil && !step.Stop.Background || step.Await != nil && step.Await.Stopped
	for _, name := range step.Tasks() {
		if of := s.ServiceOf(name); of != "" {
			if !p.running[of] || step.Start != nil {
				add("task %q: its service does not run by then", name)
			}
			continue
		}
		_, known := s.Tasks[name]
		what := "task"
		if _, service := s.Services[name]; service {
			known, what = step.Start != nil || step.Stop != nil, "service"
		}
		running, started := p.running[name]
		switch {
		case !known && what == "service":
			add("%q is a service, not a task: its tasks are called %s-1, %s-2 and so on", name, name, name)
		case !known:
			add("task %q is not in tasks", name)
		case step.Start != nil && started:
			add("%s %q was started before", what, name)
		case step.Start == nil && !running:
			add("%s %q is not running by then", what, name)
		}
		if step.Start != nil || started {
			p.running[name] = step.Start != nil || !ends && running
		}
	}
	if name, about := step.service(); about {
		switch _, known := s.Services[name]; {
		case !known:
			add("service %q is not in services", name)
		case !p.running[name]:
			add("service %q is not running by then", name)
		}
	}
}

// service is the ECS service that the step is about.
func (s Step) service() (name string, about bool) {
	switch {
	case s.Scale != nil:
		return s.Scale.Service, true
	case s.Deploy != nil:
		return s.Deploy.Service, true
	case s.Await != nil && s.Await.Steady:
		return s.Await.Service, true
	}
	return "", false
}

// trafficProblems looks at whether there is traffic by now.
func (p *progress) trafficProblems(step Step, add func(string, ...any)) {
	switch needed := step.EndTraffic != nil || step.Await != nil && step.Await.Requests > 0; {
	case needed && !p.traffic:
		add("there is no traffic by then")
	case step.Traffic != nil && p.traffic:
		add("there is traffic already; end it first")
	}
	p.traffic = step.Traffic != nil || p.traffic && step.EndTraffic == nil
	if e := step.EndTraffic; e != nil && e.Name != "" {
		if p.phases[e.Name] {
			add("name: %q is an earlier phase's", e.Name)
		}
		p.phases[e.Name] = true
	}
}

// maxPause bounds a pause, like every other wait.
const maxPause = 10 * time.Minute

// kinds are the names of the fields that are set.
func (s Step) kinds() []string {
	var names []string
	for _, kind := range []struct {
		name string
		set  bool
	}{
		{"start", s.Start != nil},
		{"stop", s.Stop != nil},
		{"scale", s.Scale != nil},
		{"deploy", s.Deploy != nil},
		{"kill", s.Kill != nil},
		{"await", s.Await != nil},
		{"mtls", s.MTLS != nil},
		{"get", s.Get != nil},
		{"post", s.Post != nil},
		{"faults", s.Faults != nil},
		{"traffic", s.Traffic != nil},
		{"endTraffic", s.EndTraffic != nil},
		{"pause", s.Pause != 0},
	} {
		if kind.set {
			names = append(names, kind.name)
		}
	}
	return names
}

// Tasks are the tasks that the step is about, and the services that it starts or
// stops.
func (s Step) Tasks() []string {
	switch {
	case s.Stop != nil:
		return s.Stop.Tasks
	case s.Kill != nil:
		return []string{s.Kill.Task}
	case s.Await != nil && s.Await.Task != "":
		return []string{s.Await.Task}
	case s.MTLS != nil:
		return []string{s.MTLS.Task}
	case s.Get != nil:
		return []string{s.Get.Task}
	case s.Post != nil:
		return []string{s.Post.Task}
	case s.Traffic != nil:
		return []string{s.Traffic.Task}
	}
	return s.Start
}

// valueProblems looks at each value by itself.
func (s Step) valueProblems(add func(string, ...any)) {
	port := func(n int) {
		if n < 1 || n > 65535 {
			add("port: %d: want 1 to 65535", n)
		}
	}
	address := func(text string) {
		if u, err := url.Parse(text); err != nil || u.Scheme != "http" || u.Host == "" {
			add("url: %q: want one such as http://127.0.0.1:9090/path", text)
		}
	}
	switch {
	case s.Stop != nil && len(s.Stop.Tasks) == 0:
		add("want a list of tasks")
	case s.Stop != nil && s.Stop.Background && (s.Stop.LeavesTokens != nil || s.Stop.AgentFails != ""):
		add("what stays is for a step to say that awaits the end, not for one in the background")
	case s.Scale != nil && s.Scale.Count < 0:
		add("count: %d: want 0 or more", s.Scale.Count)
	case s.Kill != nil:
		s.Kill.problems(add)
	case s.Await != nil:
		s.Await.problems(add)
	case s.MTLS != nil:
		port(s.MTLS.Port)
		if s.MTLS.Service == "" {
			add("service: must not be empty")
		}
	case s.Get != nil:
		address(s.Get.URL)
	case s.Post != nil:
		address(s.Post.URL)
	case s.Traffic != nil:
		port(s.Traffic.Port)
		if s.Traffic.Rate < 1 || s.Traffic.Rate > 1000 {
			add("rate: %d: want 1 to 1000 requests a second", s.Traffic.Rate)
		}
	case s.EndTraffic != nil:
		s.EndTraffic.problems(add)
	case s.Pause < 0, s.Pause > maxPause:
		add("%s: want a duration from 1ms to %s; await waits for conditions", s.Pause, maxPause)
	}
}

func (k *Kill) problems(add func(string, ...any)) {
	if k.Container == "" && k.Process+k.Signal != "" {
		add("process and signal need container: without one it is kill -9 of everything")
	}
	if strings.Contains(k.Process, "/") {
		add("process: %q: want the program's name without its directory", k.Process)
	}
	if _, err := runtime.ParseSignal(k.Signal); k.Signal != "" && err != nil {
		add("signal: %w", err)
	}
}

func (a *Await) problems(add func(string, ...any)) {
	if count(a.Service != "", a.Task != "", a.Requests > 0, len(a.Logins) > 0, a.FaultsOver) != 1 {
		add("want exactly one of service, task, logins, requests, faultsOver")
	}
	if a.Service != "" && (a.Passing < 1) != a.Steady {
		add("service needs either passing, 1 or more, or steady")
	}
	if a.Service == "" && (a.Passing != 0 || a.Steady) {
		add("passing and steady need service")
	}
	switch {
	case a.Task != "":
		a.taskProblems(add)
	case a.aboutTask():
		add("what is awaited of a task needs task")
	}
	if a.Within <= 0 {
		add("within: want a duration such as 60s: every wait has an end")
	}
}

// taskProblems are those of waiting for something of a task.
func (a *Await) taskProblems(add func(string, ...any)) {
	restarts := a.Restarts != 0
	check := a.Status != "" || a.Container != "" && !restarts
	if count(check, restarts, a.Tokens != nil, a.InTraffic != nil, a.Stopped) != 1 {
		add("task needs one of: container with status; container with restarts; tokens; inTraffic; stopped")
	}
	if restarts && (a.Container == "" || a.Restarts < 0) {
		add("restarts needs container, and 1 or more")
	}
	if a.Tokens != nil && *a.Tokens < 0 {
		add("tokens: %d: want 0 or more", *a.Tokens)
	}
	if check && (a.Container == "" || !slices.Contains([]string{"passing", "warning", "critical"}, a.Status)) {
		add("task needs container, and status passing, warning or critical")
	}
	codes := []string{
		scheduler.StopEssentialContainerExited, scheduler.StopTaskFailedToStart, scheduler.StopUserInitiated,
		scheduler.StopServiceScheduler, scheduler.StopSpotInterruption, scheduler.StopTerminationNotice, scheduler.StopInfrastructureHealth,
	}
	if a.StopCode != "" && !slices.Contains(codes, a.StopCode) {
		add("stopCode: %q: want one of %s", a.StopCode, strings.Join(codes, ", "))
	}
	if !a.Stopped && (a.StopCode != "" || a.LeavesTokens != nil || a.AgentFails != "") {
		add("stopCode, leavesTokens and agentFails need stopped")
	}
}

// aboutTask reports whether a field is set that is about a task.
func (a *Await) aboutTask() bool {
	return a.Container != "" || a.Status != "" || a.Restarts != 0 || a.Tokens != nil || a.InTraffic != nil ||
		a.Stopped || a.StopCode != "" || a.LeavesTokens != nil || a.AgentFails != ""
}

func (e *EndTraffic) problems(add func(string, ...any)) {
	if e.no {
		add("want true, or a mapping with name, failed, maxFailed, minFailed")
	}
	if e.Failed != nil && (e.MaxFailed != nil || e.MinFailed != nil) {
		add("failed is exact: it goes with neither maxFailed nor minFailed")
	}
	for _, n := range []*int{e.Failed, e.MaxFailed, e.MinFailed} {
		if n != nil && *n < 0 {
			add("%d: want 0 or more", *n)
		}
	}
	if e.MaxFailed != nil && e.MinFailed != nil && *e.MaxFailed < *e.MinFailed {
		add("maxFailed %d is less than minFailed %d", *e.MaxFailed, *e.MinFailed)
	}
}

// count is how many of them are true.
func count(set ...bool) int {
	n := 0
	for _, s := range set {
		if s {
			n++
		}
	}
	return n
}

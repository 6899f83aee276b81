package file

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
)

// stepsProblems checks the steps in order: what each needs must precede it.
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

// progress is what the steps so far have started. A task is in running once it
// was started, with false once it was stopped.
type progress struct {
	running map[string]bool
	traffic bool
	at      *time.Duration  // of the last step that has one
	phases  map[string]bool // by name
	faults  bool
}

func (s *Scenario) stepProblems(step Step, p *progress) []error {
	all, kinds := step.kinds()
	if len(kinds) != 1 {
		return []error{
			fmt.Errorf("want exactly one of %s; got %s", strings.Join(all, ", "),
				strings.Join(append(kinds, "nothing else"), ", ")),
		}
	}
	var errs []error
	add := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf(kinds[0]+": "+format, args...))
	}
	switch {
	case step.At == nil:
	case p.at != nil && *step.At < *p.at:
		add("at: %s: want a time that is not before that of an earlier step", *step.At)
	default:
		p.at = step.At
	}
	s.taskProblems(step, p, add)
	s.faultProblems(step, p, add)
	p.trafficProblems(step, add)
	step.valueProblems(add)
	switch a := step.Await; {
	case step.Stop != nil:
		s.agentProblems(step.Stop.AgentFails, add)
	case a != nil:
		s.agentProblems(a.AgentFails, add)
		if a.Tokens != nil && len(s.Checks.NoTokensOf) == 0 {
			add("tokens: checks.noTokensOf names no auth method: there is nothing to count")
		}
	}
	return errs
}

// agentProblems reports an agent that is expected to fail and is not looked for.
func (s *Scenario) agentProblems(fails string, add func(string, ...any)) {
	if fails != "" && !s.Checks.AgentsLeft {
		add("agentFails needs checks.agentsLeft: true")
	}
}

// taskProblems reports tasks and services that have not started by this step, or have
// ended. A task of a service may exist as soon as its service does.
func (s *Scenario) taskProblems(step Step, p *progress, add func(string, ...any)) {
	for _, name := range step.Tasks() {
		if of := s.ServiceOf(name); of == "" {
			s.targetProblem(name, step, p, add)
		} else if !p.running[of] || step.Start != nil {
			add("task %q: its service does not run by then", name)
		}
	}
	name, about := step.service()
	if _, known := s.Services[name]; about && !known {
		add("service %q is not in services", name)
	} else if about && !p.running[name] {
		add("service %q is not running by then", name)
	}
}

// targetProblem checks a task or service that the step names, and records what the
// step does to it.
func (s *Scenario) targetProblem(name string, step Step, p *progress, add func(string, ...any)) {
	_, task := s.Tasks[name]
	_, service := s.Services[name]
	what := "task"
	if service {
		what = "service"
	}
	running, started := p.running[name]
	switch starts := step.Start != nil; {
	case service && !starts && step.Stop == nil:
		add("%q is a service, not a task: its tasks are called %s-1, %s-2 and so on", name, name, name)
	case !task && !service:
		add("task %q is not in tasks", name)
	case starts && started:
		add("%s %q was started before", what, name)
	case !starts && !running:
		add("%s %q is not running by then", what, name)
	}
	if step.Start != nil || started {
		p.running[name] = step.Start != nil || !step.ends() && running
	}
}

// ends reports whether the tasks of the step have ended after it.
func (s Step) ends() bool {
	return s.Stop != nil && !s.Stop.Background || s.Await != nil && s.Await.Stopped
}

// service returns the ECS service that the step is about.
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

// kinds returns the keys of all kinds of steps, and those that are set.
func (s Step) kinds() (all, set []string) {
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if key == "at" {
			continue
		}
		all = append(all, key)
		if !v.Field(i).IsZero() {
			set = append(set, key)
		}
	}
	return all, set
}

// Tasks returns the tasks that the step is about, and the services that it starts or stops.
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

func (s Step) valueProblems(add func(string, ...any)) {
	switch {
	case s.Stop != nil:
		s.Stop.problems(add)
	case s.Scale != nil && s.Scale.Count < 0:
		add("count: %d: want 0 or more", s.Scale.Count)
	case s.Kill != nil:
		for _, problem := range s.Kill.Problems(checkSignal) {
			add("%s", problem)
		}
	case s.Await != nil:
		s.Await.problems(add)
	case s.MTLS != nil:
		portProblem(s.MTLS.Port, add)
		if s.MTLS.Service == "" {
			add("service: must not be empty")
		}
	case s.Get != nil:
		urlProblem(s.Get.URL, add)
	case s.Post != nil:
		urlProblem(s.Post.URL, add)
	case s.Traffic != nil:
		s.Traffic.problems(add)
	case s.EndTraffic != nil:
		s.EndTraffic.problems(add)
	case s.Pause > maxPause:
		add("%s: want a duration from 1ms to %s; await waits for conditions", s.Pause, maxPause)
	}
}

func portProblem(port int, add func(string, ...any)) {
	if port < 1 || port > 65535 {
		add("port: %d: want 1 to 65535", port)
	}
}

func urlProblem(text string, add func(string, ...any)) {
	if u, err := url.Parse(text); err != nil || u.Scheme != "http" || u.Host == "" {
		add("url: %q: want one such as http://127.0.0.1:9090/path", text)
	}
}

func (s *Stop) problems(add func(string, ...any)) {
	switch {
	case len(s.Tasks) == 0:
		add("want a list of tasks")
	case s.Background && s.AgentFails != "":
		add("agentFails needs a step that waits for the end: this one has background")
	}
}

func (t *Traffic) problems(add func(string, ...any)) {
	portProblem(t.Port, add)
	if t.Rate < 1 || t.Rate > 1000 {
		add("rate: %d: want 1 to 1000 requests a second", t.Rate)
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
	if a.Task != "" {
		a.taskProblems(add)
	} else if a.check() || a.Restarts != 0 || a.Tokens != nil || a.InTraffic != nil || a.Stopped || a.aboutEnd() {
		add("container, status, restarts, tokens, inTraffic, stopped and stopCode need task")
	}
	if a.Within <= 0 {
		add("within: want a duration such as 60s: every wait has an end")
	}
}

// check reports whether the status of a health check is awaited.
func (a *Await) check() bool { return a.Status != "" || a.Container != "" && a.Restarts == 0 }

// aboutEnd reports whether a field is set that belongs to the end of a task.
func (a *Await) aboutEnd() bool {
	return a.StopCode != "" || a.AgentFails != ""
}

// taskProblems checks what is awaited of a task.
func (a *Await) taskProblems(add func(string, ...any)) {
	restarts := a.Restarts != 0
	if count(a.check(), restarts, a.Tokens != nil, a.InTraffic != nil, a.Stopped) != 1 {
		add("task needs one of: container with status; container with restarts; tokens; inTraffic; stopped")
	}
	if restarts && (a.Container == "" || a.Restarts < 0) {
		add("restarts needs container, and 1 or more")
	}
	if a.Tokens != nil && *a.Tokens < 0 {
		add("tokens: %d: want 0 or more", *a.Tokens)
	}
	if a.check() && (a.Container == "" || !slices.Contains([]string{"passing", "warning", "critical"}, a.Status)) {
		add("task needs container, and status passing, warning or critical")
	}
	if !a.Stopped && a.aboutEnd() {
		add("stopCode and agentFails need stopped")
	}
	codes := []string{
		scheduler.StopEssentialContainerExited, scheduler.StopTaskFailedToStart, scheduler.StopUserInitiated,
		scheduler.StopServiceScheduler, scheduler.StopSpotInterruption, scheduler.StopTerminationNotice,
		scheduler.StopInfrastructureHealth,
	}
	if a.StopCode != "" && !slices.Contains(codes, a.StopCode) {
		add("stopCode: %q: want one of %s", a.StopCode, strings.Join(codes, ", "))
	}
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

// count counts those that are true.
func count(set ...bool) int {
	n := 0
	for _, s := range set {
		if s {
			n++
		}
	}
	return n
}

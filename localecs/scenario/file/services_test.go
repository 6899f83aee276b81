package file

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

const aroundServices = `
name: x
images: {i: {programs: {}}}
consul: {image: i}
`

func TestServicesAndTheirSteps(t *testing.T) {
	t.Parallel()
	s, err := parseScenario([]byte(aroundServices + `
api: {throttle: true, lag: {new: 1s, lists: 5s}}
tasks: {web: {definition: web.json, tags: {team: shop}, propagateTags: TASK_DEFINITION}}
services:
  api: {definition: api.json, count: 2, maximumPercent: 150, circuitBreaker: {enable: true}, healthCheckGracePeriod: 20s}
steps:
- start: [web, api]
- await: {service: api, steady: true, within: 60s}
- kill: {task: api-2}
- await: {task: api-2, stopped: true, within: 60s}
- scale: {service: api, count: 3}
- deploy: {service: api}
- deploy: {service: api, definition: api-2.json}
- stop: [api-12, web]
- stop: [api]
`))
	if err != nil {
		t.Fatal(err)
	}
	most := 150
	if d := cmp.Diff(map[string]Service{"api": {
		Definition: "api.json", Count: 2, MaximumPercent: &most, CircuitBreaker: shapes.CircuitBreaker{Enable: true},
		HealthCheckGracePeriod: 20 * time.Second,
	}}, s.Services); d != "" {
		t.Errorf("services (-want +got):\n%s", d)
	}
	if d := cmp.Diff(API{Throttle: true, Lag: controlplane.Lag{New: time.Second, Lists: 5 * time.Second}},
		s.API); d != "" {
		t.Errorf("api (-want +got):\n%s", d)
	}
	if d := cmp.Diff(Task{Definition: "web.json", Tags: map[string]string{"team": "shop"},
		PropagateTags: "TASK_DEFINITION"}, s.Tasks["web"]); d != "" {
		t.Errorf("task (-want +got):\n%s", d)
	}
	var texts []string
	for _, step := range s.Steps {
		texts = append(texts, step.String())
	}
	if d := cmp.Diff([]string{
		"start web, api", "await service api to be steady", "kill everything in api-2",
		"await task api-2 to stop by itself", "scale api to 3",
		"deploy api", "deploy api with api-2.json", "stop api-12, web", "stop api",
	}, texts); d != "" {
		t.Errorf("steps (-want +got):\n%s", d)
	}
	for task, want := range map[string]string{"api-1": "api", "api-01": "", "api": "", "api-": "", "web-1": "",
		"api-x": ""} {
		if got := s.ServiceOf(task); got != want {
			t.Errorf("%s is of service %q, want %q", task, got, want)
		}
	}
}

func TestMistakesAboutServices(t *testing.T) {
	t.Parallel()
	_, err := parseScenario([]byte(aroundServices + `
tasks:
  web: {definition: w.json, service: api, tags: {"aws:x": y}, propagateTags: SERVICE}
  api-3: a.json
services:
  ../x: {definition: x.json}
  web: {definition: w.json}
  api: {count: -1, minimumHealthyPercent: 101, maximumPercent: 99, healthCheckGracePeriod: 1500ms, propagateTags: ALL, tags: {"": y}}
steps:
- scale: {service: api, count: -1}
- kill: {task: api-1}
- start: [api, api-2]
- start: [api]
- kill: {task: api}
- deploy: {service: none}
- await: {service: api, passing: 1, steady: true, within: 1s}
- await: {steady: true, within: 1s}
- stop: [api]
- await: {service: api, steady: true, within: 1s}
- stop: [api-1]
`))
	if err == nil {
		t.Fatal("no error")
	}
	want := []string{
		`services: "../x": want letters, digits, _ . and -: it begins the names of directories`,
		`services: "web" is in tasks, too`,
		`services["api"].count: -1: want 0 or more`,
		`services["api"].definition: want the task definition's file`,
		`services["api"].healthCheckGracePeriod: 1.5s: want whole seconds`,
		`services["api"].maximumPercent: 99: want 100 to 200`,
		`services["api"].minimumHealthyPercent: 101: want 0 to 100`,
		`services["api"].propagateTags: "ALL": want TASK_DEFINITION, SERVICE, NONE`,
		`services["api"].tags: "": want a key, which does not begin with aws:`,
		`steps[0]: scale: count: -1: want 0 or more`,
		`steps[0]: scale: service "api" is not running by then`,
		`steps[10]: stop: task "api-1": its service does not run by then`,
		`steps[1]: kill: task "api-1": its service does not run by then`,
		`steps[2]: start: task "api-2": its service does not run by then`,
		`steps[3]: start: service "api" was started before`,
		`steps[4]: kill: "api" is a service, not a task: its tasks are called api-1, api-2 and so on`,
		`steps[5]: deploy: service "none" is not in services`,
		`steps[6]: await: service needs either passing, 1 or more, or steady`,
		`steps[7]: await: passing and steady need service`,
		`steps[7]: await: service "" is not in services`,
		`steps[7]: await: want exactly one of service, task, logins, requests, faultsOver`,
		`steps[9]: await: service "api" is not running by then`,
		`tasks: "api-3" is what a task of service "api" may be called`,
		`tasks["web"].propagateTags: "SERVICE": want TASK_DEFINITION, NONE`,
		`tasks["web"].service: "api" is in services, which start their tasks themselves`,
		`tasks["web"].tags: "aws:x": want a key, which does not begin with aws:`,
	}
	got := strings.Split(err.Error(), "\n")
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mistakes (-want +got):\n%s", diff)
	}
}

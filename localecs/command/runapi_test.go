package command

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// tellTasks answers what AWS's SDK finds out about the tasks of the cluster, with nothing but what ECS gives a
// container.
func tellTasks(w http.ResponseWriter, r *http.Request) {
	text, err := describeAll(r)
	if err != nil {
		text = err.Error()
	}
	fmt.Fprintln(w, text)
}

func describeAll(r *http.Request) (string, error) {
	aws, err := config.LoadDefaultConfig(r.Context())
	if err != nil {
		return "", err
	}
	client := ecs.NewFromConfig(aws)
	var arns []string
	for _, status := range []types.DesiredStatus{types.DesiredStatusRunning, types.DesiredStatusStopped} {
		list, err := client.ListTasks(r.Context(), &ecs.ListTasksInput{DesiredStatus: status})
		if err != nil {
			return "", err
		}
		arns = append(arns, list.TaskArns...)
	}
	out, err := client.DescribeTasks(r.Context(), &ecs.DescribeTasksInput{Tasks: arns, Include: []types.TaskField{types.TaskFieldTags}})
	if err != nil {
		return "", err
	}
	var lines []string
	running := map[string]int{}
	for _, t := range out.Tasks {
		definition := (*t.TaskDefinitionArn)[strings.LastIndex(*t.TaskDefinitionArn, "/")+1:]
		line := fmt.Sprint(definition, " ", *t.LastStatus, " ", *t.DesiredStatus)
		if strings.HasPrefix(*t.Group, "service:") {
			line += " " + *t.Group
		}
		if t.StopCode != "" {
			line += fmt.Sprint(" ", t.StopCode, ": ", *t.StoppedReason)
		}
		var tags []string
		for _, tag := range t.Tags {
			tags = append(tags, *tag.Key+"="+*tag.Value)
		}
		slices.Sort(tags)
		lines = append(lines, line+" "+strings.Join(tags, " "))
		if *t.LastStatus == "RUNNING" {
			family, _, _ := strings.Cut(definition, ":")
			running[family]++
		}
	}
	for _, family := range slices.Sorted(maps.Keys(running)) {
		lines = append(lines, fmt.Sprint("running ", family, " ", running[family]))
	}
	return strings.Join(lines, "\n"), nil
}

// A container of a scenario calls ECS with its role, and finds the scenario's tasks and services there, as they are;
// the steps take a service through its life.
func TestScenariosHaveTheECSAPI(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		testkit.Missing(t, "network namespaces need root")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	code, report, events := runReport(t, []string{"-var", "kid=" + self}, filepath.Join("testdata", "services"))
	if code != 0 || len(report.Failures) != 0 {
		t.Fatalf("exit %d, %q", code, report.Failures)
	}
	wantEvents(t, events, []event{
		{Kind: "kill", Task: "web-2", Text: "SIGKILL to everything in it"},
		{Kind: "status", Task: "web-3", Text: "RUNNING"},  // in place of web-2
		{Kind: "status", Task: "web-11", Text: "RUNNING"}, // in place of web-10
		{Kind: "service", Text: "service web: 3 tasks of web:2 wanted, 3 of 3 running"},
		{Kind: "service", Text: "service web: 0 tasks of web:2 wanted, 0 of 0 running"},
	})
}

// What ECS says of a service's deployment is what a step that awaits it says.
func TestServicesThatCannotBeSteadyFailTheirStep(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		testkit.Missing(t, "network namespaces need root")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const head = `name: broken
timeScale: 10
images:
  kid: {programs: {/bin/kid: "${kid}"}, entrypoint: [kid], env: [GORACE=atexit_sleep_ms=0]}
  consul: {programs: {/bin/consul: "${kid}"}}
consul: {image: consul}
`
	for want, text := range map[string]string{
		"step 2: await service api to be steady within 50s: deployment ecs-svc/": head +
			"services: {api: {definition: bad.json, count: 1, circuitBreaker: {enable: true}}}\nsteps:\n- start: [api]\n- await: {service: api, steady: true, within: 50s}\n",
		"step 4: await service api to be steady within 50s: deployment ecs-svc/": head + // the new version crashes at once
			"services: {api: {definition: good.json, count: 1, circuitBreaker: {enable: true, rollback: true}}}\n" +
			"steps:\n- start: [api]\n- await: {service: api, steady: true, within: 50s}\n" +
			"- deploy: {service: api, definition: done.json}\n- await: {service: api, steady: true, within: 50s}\n- stop: [api]\n",
		"step 4: await service api to be steady within 1m30s: deployment ecs-svc/": head + // and is never healthy
			"services: {api: {definition: good.json, count: 1, circuitBreaker: {enable: true, rollback: true}}}\n" +
			"steps:\n- start: [api]\n- await: {service: api, steady: true, within: 50s}\n" +
			"- deploy: {service: api, definition: sick.json}\n- await: {service: api, steady: true, within: 90s}\n- stop: [api]\n",
		"step 2: kill everything in api-2: service api has not started task api-2 yet": head +
			"services: {api: {definition: good.json, count: 0}}\nsteps:\n- start: [api]\n- kill: {task: api-2}\n",
		"api-1: stopped unexpectedly: EssentialContainerExited: Essential container in task exited": head +
			"services: {api: {definition: done.json, count: 1}}\ntasks: {web: good.json}\nsteps:\n- start: [web, api]\n" +
			"- traffic: {task: web, port: 8080, rate: 1}\n- await: {requests: 2, within: 50s}\n- endTraffic: true\n- stop: [api, web]\n",
	} {
		definition := func(command string) string {
			return `{"family": "api", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "256", "memory": "512",
				"containerDefinitions": [{"name": "app", "image": "kid", "command": ["` + command + `", ":8080"]}]}`
		}
		dir := given{"scenario.yaml": text, "bad.json": strings.Replace(definition("web"), `"kid"`, `"none"`, 1), "good.json": definition("web"), "done.json": definition("done"), "sick.json": strings.Replace(definition("web"), `"image"`,
			`"healthCheck": {"command": ["CMD", "/none"], "interval": 5, "retries": 1}, "image"`, 1)}.write(t)
		code, report, _ := runReport(t, []string{"-var", "kid=" + self}, dir)
		if code != 2 || !slices.ContainsFunc(report.Failures, func(f string) bool { return strings.HasPrefix(f, want) }) {
			t.Errorf("exit %d, %q; want %s", code, report.Failures, want)
		}
	}
}

package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkReplacement replaces one instance of api after another, as a deployment does, while web sends 50 requests a
// second that nothing retries. It reports, as median and maximum, the seconds from the task's first container to
// traffic, from the opening of ECS's gate to Envoy's readiness, from the request to stop to the end of the application
// and to the end of the task, and how many requests failed.
func BenchmarkReplacement(b *testing.B) {
	for _, c := range []struct{ name, order, startup string }{
		{"reverse", "reverse", ""},
		{"at-once", "at-once", ""},
		{"startup-tcp", "reverse", `\"healthSync\":{\"startup\":{\"api\":\"tcp\"}},`},
	} {
		b.Run(c.name, func(b *testing.B) {
			var steps strings.Builder
			steps.WriteString(firstSteps)
			for i := range b.N {
				steps.WriteString(replacementSteps(i))
			}
			fmt.Fprintf(&steps, "- endTraffic: true\n- stop: [web, api-%d]\n", b.N)
			l := measureLifecycle(b, b.N+1, c.startup, steps.String(), "-stop-order", c.order)
			for i := range b.N {
				l.started(fmt.Sprintf("api-%d", i+1))
				l.stopped(fmt.Sprintf("api-%d", i))
			}
			l.report(b)
		})
	}
}

// BenchmarkAgentlessReplacement runs BenchmarkReplacement for tasks without an agent.
func BenchmarkAgentlessReplacement(b *testing.B) {
	for name, settings := range map[string]string{
		"health-check": "",
		"startup-tcp":  `\"healthSync\":{\"startup\":{\"api\":\"tcp\",\"sidecar-proxy\":\"tcp\"}},`,
	} {
		b.Run(name, func(b *testing.B) {
			var text strings.Builder
			text.WriteString("\ntasks:\n  controller: controller.json\n  web: web.json\n")
			for i := range b.N + 1 {
				fmt.Fprintf(&text, "  api-%d: api.json\n", i)
			}
			text.WriteString("\nsteps:\n- start: [controller]\n- await: {logins: [iam-ecs-service-token], within: 60s}\n" + firstSteps)
			for i := range b.N {
				text.WriteString(replacementSteps(i))
			}
			fmt.Fprintf(&text, "- endTraffic: true\n- stop: [web, api-%d]\n- stop: [controller]\n\nchecks:\n  minRequests: 25\n", b.N)
			dir := derive(b, "agentless-mesh", text.String(), `\"healthSyncContainers`, settings+`\"healthSyncContainers`)
			file := filepath.Join(dir, "scenario.yaml")
			scenario, err := os.ReadFile(file)
			if err == nil {
				err = os.WriteFile(file, bytes.Replace(scenario, []byte("gatePeriod: 0s"), []byte("gatePeriod: 5s"), 1), 0o644)
			}
			if err != nil {
				b.Fatal(err)
			}
			l := measureRun(b, dir, "-stop-order", "reverse")
			for i := range b.N {
				l.started(fmt.Sprintf("api-%d", i+1))
				l.stopped(fmt.Sprintf("api-%d", i))
			}
			l.report(b)
		})
	}
}

// firstSteps bring web and one instance of api into traffic, under requests.
const firstSteps = "- start: [web, api-0]\n- await: {service: api, passing: 1, within: 90s}\n- await: {service: web, passing: 1, within: 90s}\n" +
	"- traffic: {task: web, port: 8080, rate: 50}\n- await: {requests: 25, within: 60s}\n"

// replacementSteps replace instance i of api by the next one.
func replacementSteps(i int) string {
	return fmt.Sprintf("- start: [api-%d]\n- await: {task: api-%[1]d, inTraffic: true, within: 90s}\n- await: {requests: 25, within: 60s}\n- stop: [api-%d]\n- await: {requests: 25, within: 60s}\n", i+1, i)
}

// BenchmarkScaleOut starts 20 instances at once under the same traffic.
func BenchmarkScaleOut(b *testing.B) {
	for b.Loop() {
		const tasks = 20
		names := make([]string, tasks)
		for i := range names {
			names[i] = fmt.Sprintf("api-%d", i+1)
		}
		l := measureLifecycle(b, tasks+1, "", firstSteps+
			"- start: ["+strings.Join(names, ", ")+"]\n"+
			fmt.Sprintf("- await: {service: api, passing: %d, within: 120s}\n", tasks+1)+
			"- await: {requests: 50, within: 60s}\n- endTraffic: true\n"+
			"- stop: ["+strings.Join(names, ", ")+"]\n- stop: [web, api-0]\n")
		l.started("api-0")
		alone := l.start[0]
		for _, name := range names {
			l.started(name)
		}
		b.ReportMetric(slices.Max(l.start).Seconds()/alone.Seconds(), "last/alone")
		l.report(b)
	}
}

// lifecycle is what the events of one run tell of its tasks.
type lifecycle struct {
	tb                      testing.TB
	events                  []event
	failed, answered        int
	logs                    string // directory
	start, application, end []time.Duration
	envoy                   []time.Duration
}

// measureLifecycle runs hello-mesh, without its controller, with that many instances of
// api, whose configuration gets settings in front, and these steps.
func measureLifecycle(b *testing.B, instances int, settings, steps string, flags ...string) *lifecycle {
	b.Helper()
	dir := variant(b, steps, func(name, text string) string {
		switch name {
		case "api.json":
			return strings.ReplaceAll(text, `\"healthSyncContainers`, settings+`\"healthSyncContainers`)
		case "web.json":
			return text
		}
		before, after, ok := strings.Cut(text, "\ntasks:\n")
		_, after, found := strings.Cut(after, "\n\n")
		if !ok || !found {
			b.Fatal("the scenario has no tasks")
		}
		before += "\ntasks:\n  web: web.json\n"
		for i := range instances {
			before += fmt.Sprintf("  api-%d: api.json\n", i)
		}
		return strings.Replace(before, "gatePeriod: 0s", "gatePeriod: 5s", 1) + "\n" + after
	})
	return measureRun(b, dir, flags...)
}

// measureRun runs a scenario.
func measureRun(b *testing.B, dir string, flags ...string) *lifecycle {
	b.Helper()
	state := b.TempDir()
	args := slices.Concat([]string{"run", "-json", "-dir", state}, flags, programs(b), []string{dir})
	got := call(b, args...)
	logs, _ := filepath.Glob(filepath.Join(state, "*", "logs"))
	if len(logs) != 1 {
		b.Fatalf("logs %q", logs)
	}
	l := &lifecycle{tb: b, logs: logs[0]}
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	for _, line := range lines {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			b.Fatal(err)
		}
		l.events = append(l.events, e)
	}
	var report struct {
		Failed, Answered int
		Failures         []string
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &report); err != nil || len(report.Failures) > 0 {
		b.Errorf("%v, failures %q", err, report.Failures)
	}
	l.failed, l.answered = report.Failed, report.Answered
	return l
}

// at returns when the first event of the task that matches came.
func (l *lifecycle) at(task string, matches func(event) bool) time.Time {
	l.tb.Helper()
	for _, e := range l.events {
		if e.Task == task && matches(e) {
			return e.Time
		}
	}
	l.tb.Fatalf("no such event of task %s", task)
	return time.Time{}
}

func (l *lifecycle) started(task string) {
	running := l.at(task, func(e event) bool { return e.Kind == "status" && e.Container != "" && e.Text == "RUNNING" })
	serving := l.at(task, func(e event) bool { return e.Kind == "in_traffic" && e.Text == "in traffic" })
	l.start = append(l.start, serving.Sub(running))
	l.envoy = append(l.envoy, l.waited(task))
}

// waited returns how long the application waited for Envoy's public listener, from the
// moment when ECS started all containers but the copy of the program.
func (l *lifecycle) waited(task string) time.Duration {
	l.tb.Helper()
	text, err := os.ReadFile(filepath.Join(l.logs, task, "api.log"))
	found := waitIsOver.FindSubmatch(text)
	if err != nil || found == nil {
		l.tb.Fatalf("log of %s says nothing of a wait: %v", task, err)
	}
	elapsed, err := time.ParseDuration(string(found[1]))
	if err != nil {
		l.tb.Fatal(err)
	}
	return elapsed
}

var waitIsOver = regexp.MustCompile(`finished waiting: .*elapsed=(\S+)`)

func (l *lifecycle) stopped(task string) {
	ended := func(container string) time.Time {
		return l.at(task, func(e event) bool {
			return e.Kind == "status" && e.Container == container && strings.HasPrefix(e.Text, "STOPPED")
		})
	}
	asked := l.at(task, func(e event) bool { return e.Kind == "desired" })
	l.application = append(l.application, ended("api").Sub(asked))
	l.end = append(l.end, ended("").Sub(asked))
}

func (l *lifecycle) report(b *testing.B) {
	b.ReportMetric(0, "ns/op") // means nothing here
	for name, times := range map[string][]time.Duration{"start": l.start, "gate-to-envoy": l.envoy, "app-end": l.application, "task-end": l.end} {
		if len(times) == 0 {
			continue
		}
		slices.Sort(times)
		b.ReportMetric(times[len(times)/2].Seconds(), name+"-s")
		b.ReportMetric(times[len(times)-1].Seconds(), name+"-max-s")
	}
	b.ReportMetric(float64(l.answered), "requests")
	b.ReportMetric(float64(l.failed), "failed")
}

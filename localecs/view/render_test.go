package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rivo/uniseg"

	"github.com/meshtask/consul-ecs/localecs/chaos"
)

// frame is Render's result without colour, each row with the margin that shows
// where it begins.
func frame(s State, width, height int, at time.Duration) string {
	var b strings.Builder
	for _, line := range Render(s, Size{width, height}, false, after(at)) {
		b.WriteString("|" + line + "\n")
	}
	return b.String()
}

// crowd is hello with so many more tasks, every third of which has stopped.
func crowd(n int) State {
	s := hello()
	for i := range n {
		t := mesh(fmt.Sprintf("api-%d", i+3), fmt.Sprintf("10.42.0.%d", i+7), "running", "exited(0)", "healthy", "running", "healthy").has(3, 0)
		if i%3 == 0 {
			t = t.ended(5*time.Second, "UserInitiated", "Task stopped by user")
		}
		s.Tasks = append(s.Tasks, t)
	}
	return s
}

func TestFrames(t *testing.T) {
	t.Parallel()
	const now = 5200 * time.Millisecond
	early := State{Scenario: "hello-mesh", Begun: begun, Step: Step{Text: "start the Consul server", Begun: begun}}
	failed := hello()
	failed.Tasks = []Task{
		mesh("api-1", "10.42.0.5", "exited(0)", "exited(1)", "never ran", "never ran", "never ran").
			ended(3*time.Second, "TaskFailedToStart", "dependency consul-ecs-mesh-init failed"),
		mesh("api-2", "10.42.0.6", "exited(0)", "exited(0)", "exited(137)", "exited(0)", "exited(0)").ended(12*time.Second, "UserInitiated", "Task stopped by user"),
	}
	failed.Step, failed.Traffic = Step{Number: 11, Count: 14, Text: "stop api-1, api-2", SoFar: "1 of 2", Begun: begun}, &Traffic{URL: "http://x/", Answered: 40, Failed: 2, Slowest: 10 * time.Second}
	troubled := early
	for _, endpoint := range []string{"sts", "iam", "ecs", "metadata", "credentials", "protection"} {
		troubled.Faults = append(troubled.Faults, chaos.Fault{Endpoint: &chaos.Endpoint{Name: endpoint, Hang: true}})
	}
	few := early
	few.Faults = troubled.Faults[:5]
	for _, c := range []struct {
		name          string
		state         State
		width, height int
		want          string
	}{
		{"no tasks yet", early, 60, 24, `
|── hello-mesh, 5.2 s ──────────────────────────────────────
|start the Consul server, 5.2 s
`},
		{"many faults", troubled, 60, 24, `
|── hello-mesh, 5.2 s ──────────────────────────────────────
|start the Consul server, 5.2 s
|fault: sts hangs
|fault: iam hangs
|fault: ecs hangs
|fault: metadata hangs
|and 2 more faults
`},
		{"a few faults", few, 60, 24, `
|── hello-mesh, 5.2 s ──────────────────────────────────────
|start the Consul server, 5.2 s
|fault: sts hangs
|fault: iam hangs
|fault: ecs hangs
|fault: metadata hangs
|fault: credentials hangs
`},
		{"wide", hello(), 180, 40, `
|── hello-mesh, 5.2 s ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
|web    10.42.0.4  3.2 s  PENDING   consul-client running    mesh-init exited(0)  sidecar-proxy starting   health-sync running    api waiting
|api-1  10.42.0.5  3.2 s  STOPPING  consul-client stopping   mesh-init exited(0)  sidecar-proxy stopping   health-sync exited(0)  api exited(0)  Consul 1 passing, 2 critical
|api-2  10.42.0.6  3.2 s  RUNNING   consul-client running    mesh-init exited(0)  sidecar-proxy healthy    health-sync running    api unhealthy  Consul 3 passing
|step 2 of 14: await 2 passing instances of api (1 of 2), 3.1 s of 90 s
|requests: 412 answered, 0 failed, slowest 22 ms; 20 a second to http://10.42.0.4:8080/
`},
		{"usual", hello(), 80, 24, `
|── hello-mesh, 5.2 s ──────────────────────────────────────────────────────────
|web    10.42.0.4  3.2 s  PENDING
|  consul-client running    mesh-init exited(0)  sidecar-proxy starting
|  health-sync running    api waiting
|api-1  10.42.0.5  3.2 s  STOPPING  Consul 1 passing, 2 critical
|  consul-client stopping   mesh-init exited(0)  sidecar-proxy stopping
|  health-sync exited(0)  api exited(0)
|api-2  10.42.0.6  3.2 s  RUNNING   Consul 3 passing
|  consul-client running    mesh-init exited(0)  sidecar-proxy healthy
|  health-sync running    api unhealthy
|step 2 of 14: await 2 passing instances of api (1 of 2), 3.1 s of 90 s
|requests: 412 answered, 0 failed, slowest 22 ms; 20 a second to http://10.42.0…
`},
		{"narrow", hello(), 40, 12, `
|── hello-mesh, 5.2 s ──────────────────
|web    3.2 s  PENDING   1 waiting, 1 s…
|api-1  3.2 s  STOPPING  2 stopping, Co…
|api-2  3.2 s  RUNNING   api unhealthy,…
|step 2 of 14: … (1 of 2), 3.1 s of 90 s
|requests: 412 answered, 0 failed, slow…
`},
		{"low", hello(), 100, 10, `
|── hello-mesh, 5.2 s ──────────────────────────────────────────────────────────────────────────────
|web    10.42.0.4  3.2 s  PENDING   1 waiting, 1 starting, 2 running
|api-1  10.42.0.5  3.2 s  STOPPING  2 stopping, Consul 1 passing, 2 critical
|api-2  10.42.0.6  3.2 s  RUNNING   api unhealthy, 2 running, 1 healthy, Consul 3 passing
|step 2 of 14: await 2 passing instances of api (1 of 2), 3.1 s of 90 s
|requests: 412 answered, 0 failed, slowest 22 ms; 20 a second to http://10.42.0.4:8080/
`},
		{"very low", hello(), 100, 6, `
|web    10.42.0.4  3.2 s  PENDING   1 waiting, 1 starting, 2 running
|… and 2 more tasks
|step 2 of 14: await 2 passing instances of api (1 of 2), 3.1 s of 90 s
|requests: 412 answered, 0 failed, slowest 22 ms; 20 a second to http://10.42.0.4:8080/
`},
		{"two rows", hello(), 100, 2, `
|step 2 of 14: await 2 passing instances of api (1 of 2), 3.1 s of 90 s
`},
		{"one row", hello(), 100, 1, ``},
		{"many tasks, stopped ones go first", crowd(12), 90, 18, `
|── hello-mesh, 5.2 s ────────────────────────────────────────────────────────────────────
|web     10.42.0.4   3.2 s  PENDING   1 waiting, 1 starting, 2 running
|api-1   10.42.0.5   3.2 s  STOPPING  2 stopping, Consul 1 passing, 2 critical
|api-2   10.42.0.6   3.2 s  RUNNING   api unhealthy, 2 running, 1 healthy, Consul 3 passi…
|api-4   10.42.0.8   3.2 s  RUNNING   2 running, 2 healthy, Consul 3 passing
|api-5   10.42.0.9   3.2 s  RUNNING   2 running, 2 healthy, Consul 3 passing
|api-7   10.42.0.11  3.2 s  RUNNING   2 running, 2 healthy, Consul 3 passing
|api-8   10.42.0.12  3.2 s  RUNNING   2 running, 2 healthy, Consul 3 passing
|api-10  10.42.0.14  3.2 s  RUNNING   2 running, 2 healthy, Consul 3 passing
|… and 7 more tasks
|step 2 of 14: await 2 passing instances of api (1 of 2), 3.1 s of 90 s
|requests: 412 answered, 0 failed, slowest 22 ms; 20 a second to http://10.42.0.4:8080/
`},
		{"stopped and failed", failed, 100, 24, `
|── hello-mesh, 5.2 s ──────────────────────────────────────────────────────────────────────────────
|api-1  10.42.0.5  3.0 s  STOPPED   mesh-init exited(1), TaskFailedToStart: dependency consul-ecs-m…
|api-2  10.42.0.6   12 s  STOPPED   sidecar-proxy exited(137), UserInitiated: Task stopped by user
|step 11 of 14: stop api-1, api-2 (1 of 2), 5.2 s
|requests: 40 answered, 2 failed, slowest 10 s to http://x/
`},
	} {
		if diff := cmp.Diff(strings.TrimPrefix(c.want, "\n"), frame(c.state, c.width, c.height, now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestEveryFrameFits(t *testing.T) {
	t.Parallel()
	strange := crowd(3)
	strange.Faults = []chaos.Fault{{Spot: &chaos.Spot{Task: "例え\x1b[2J"}}, {Server: chaos.Down}}
	strange.Scenario, strange.Step.Text = "日本語", "post http://例え.テスト/\x1b[2J\n👩‍👩‍👧 in web"
	for _, s := range []State{{}, hello(), crowd(0), crowd(20), crowd(200), strange} {
		for width := 0; width < 190; width += 7 {
			for height := 0; height < 40; height += 3 {
				rows := Render(s, Size{width, height}, false, after(time.Minute))
				if len(rows) > max(0, height-1) || height > 20 && len(rows) > height*2/3 {
					t.Fatalf("%d rows in %dx%d", len(rows), width, height)
				}
				for _, row := range rows {
					if n := uniseg.StringWidth(row); n > max(0, width-1) || strings.ContainsAny(row, "\x1b\n") {
						t.Fatalf("%d cells in %dx%d: %q", n, width, height, row)
					}
				}
			}
		}
	}
}

func TestColourIsNotTheCarrier(t *testing.T) {
	t.Parallel()
	s := hello()
	size := Size{100, 24}
	lines := Render(s, size, true, after(time.Minute))
	if got := strings.Join(lines, "\n"); !strings.Contains(got, "api \x1b[31munhealthy\x1b[0m") || !strings.Contains(got, "\x1b[32mhealthy\x1b[0m") {
		t.Errorf("no colours in %q", got)
	}
	for i, plain := range Render(s, size, false, after(time.Minute)) {
		bare := lines[i]
		for _, code := range []string{"31", "32", "33", "2", "0"} {
			bare = strings.ReplaceAll(bare, "\x1b["+code+"m", "")
		}
		if strings.TrimRight(bare, " ") != plain {
			t.Errorf("row %d: got %q without colours, want %q", i, bare, plain)
		}
		if strings.Count(lines[i], "\x1b[0m")*2 != strings.Count(lines[i], "\x1b[") {
			t.Errorf("row %d leaves a colour on: %q", i, lines[i])
		}
	}
}

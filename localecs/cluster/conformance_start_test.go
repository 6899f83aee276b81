package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/taskdef"
)

// The scenarios of docs/localecs/fidelity.md in which real processes, networks and endpoints matter.
// Package scheduler has those about order and health without time or processes, taskdef
// those about validation.

func TestConformanceExitZeroStopsTheTask(t *testing.T) {
	t.Parallel()
	s := startTask(t, nil, helper("a", "exit", "0", "2s"))
	v := s.stopped()
	testkit.Equal(t, "stop code", v.StopCode, "EssentialContainerExited")
	testkit.Equal(t, "stopped reason", v.StoppedReason, "Essential container in task exited")
	testkit.Equal(t, "known status", v.KnownStatus, "STOPPED")
	testkit.Equal(t, "exit code", s.code("a"), 0)
	a := s.container("a")
	if a.StartedAt.IsZero() {
		t.Error("a has no start")
	}
	order := []time.Time{a.StartedAt, v.StartedAt, a.FinishedAt, v.ExecutionStoppedAt}
	if !slices.IsSortedFunc(order, time.Time.Compare) {
		t.Errorf("a's start, the task's, a's end, the task's: %s, want them in this order", order)
	}
}

// Also 19: what a blocked container looks like.
func TestConformanceHEALTHYGateOpensWithTheFirstPass(t *testing.T) {
	t.Parallel()
	s := startTask(t, nil, checked(helper("a", "run", "0s", "0"), 3, "CMD", "/bin/helper", "probe", "FFP"), after(helper("b", "run", "0s", "0"), "a", "HEALTHY"))
	s.until("task RUNNING", running)
	a, b := s.container("a"), s.container("b")
	between(t, "b after a's health", b.StartedAt.Sub(a.Health.Since), 0, 0)
	between(t, "b after a's start", b.StartedAt.Sub(a.StartedAt), 3*time.Second, 3*time.Second)
	blocked := s.seen(func(m sample) bool { return m.container("b").KnownStatus == "PULLED" })
	if len(blocked) == 0 {
		t.Fatal("no sample of b blocked")
	}
	for _, m := range blocked {
		b := m.container("b")
		testkit.Equal(t, "desired status of b", b.DesiredStatus, "RUNNING")
		if b.CreatedAt != nil || b.StartedAt != nil {
			t.Errorf("blocked: b %+v, want neither created nor started", b)
		}
		testkit.Equal(t, "exit code of b", b.ExitCode, nil)
		testkit.Equal(t, "networks of b", len(b.Networks), 1)
		if b.DockerId == "" || m.KnownStatus == "RUNNING" {
			t.Errorf("blocked: task %s, b's ID %q", m.KnownStatus, b.DockerId)
		}
	}
}

func TestConformanceMissingExecutable(t *testing.T) {
	t.Parallel()
	a := helper("a")
	a.EntryPoint = []string{"/bin/missing"}
	// b may get TERM before it has a handler.
	s := startTask(t, nil, a, stopTimeout(helper("b", "run", "0s", "0"), 1))
	v := s.stopped()
	if v.StopCode != "TaskFailedToStart" || !strings.HasPrefix(v.StoppedReason, "CannotStartContainerError: ResourceInitializationError: failed to create new container runtime task: ") {
		t.Errorf("%s: %s", v.StopCode, v.StoppedReason)
	}
	testkit.Equal(t, "known status of a", s.container("a").KnownStatus, "STOPPED")
	if a := s.container("a"); a.ExitCode != nil || !a.StartedAt.IsZero() {
		t.Errorf("a started: %+v", a)
	}
	if b := s.container("b"); b.KnownStatus != "STOPPED" || b.DesiredStatus != "STOPPED" {
		t.Errorf("b %+v", b)
	}
}

func TestConformanceUnhealthyAfterRetries(t *testing.T) {
	t.Parallel()
	s := startTask(t, nil, checked(helper("a", "run", "0s", "0"), 3, "CMD", "/bin/helper", "probe", "F"))
	v := s.until("UNHEALTHY", func(v scheduler.View) bool { return v.Containers[0].Health.Status == "UNHEALTHY" })
	a := v.Containers[0]
	// Three intervals, each from the end of the probe before.
	between(t, "UNHEALTHY after the start", a.Health.Since.Sub(a.StartedAt), 3*time.Second, 3*time.Second)
	if a.Health.ExitCode != 2 || a.Health.Output != "probe 3\n" {
		t.Errorf("%+v, want code 2 and the third probe's output", a.Health)
	}
	for _, m := range s.seen(func(m sample) bool { return m.container("a").StartedAt != nil && m.ended.Before(a.Health.Since) }) {
		if h := m.container("a").Health; h == nil || h.Status != "" {
			t.Errorf("%s after the start: health %+v, want {}", m.ended.Sub(a.StartedAt), h)
		}
	}
	code, body := s.request("GET", s.base("a"), "")
	testkit.Equal(t, "status", code, 200)
	for _, want := range []string{
		`"Health":{"status":"UNHEALTHY","statusSince":"`, `"exitCode":2,"output":"probe 3\n"}`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%s, want %s in it", body, want)
		}
	}
	// 34: in a task of no service that is all.
	testkit.Equal(t, "health", v.HealthStatus(), "UNHEALTHY")
	testkit.Equal(t, "known status", v.KnownStatus, "RUNNING")
	testkit.Equal(t, "desired status", v.DesiredStatus, "RUNNING")
}

func TestConformanceFormsOfHealthCommands(t *testing.T) {
	t.Parallel()
	with := func(name string, command ...string) taskdef.Container {
		c := checked(helper(name, "run", "0s", "0"), 1, command...)
		c.Environment = []taskdef.KeyValue{{Name: "X", Value: "1"}}
		return c
	}
	s := startTask(t, nil,
		with("shell", "CMD-SHELL", "test $X = 1"), with("exec", "CMD", "/bin/helper", "equal", "$X", "1"),
		with("literal", "CMD", "/bin/helper", "equal", "$X", "$X"), with("bare", "/bin/helper", "equal", "1", "1"), with("none", "NONE"))
	v := s.until("four decided", func(v scheduler.View) bool {
		decided := 0
		for _, c := range v.Containers {
			if c.Health != nil && c.Health.Status != "" {
				decided++
			}
		}
		return decided == 4
	})
	for name, want := range map[string]string{"shell": "HEALTHY", "exec": "UNHEALTHY", "literal": "HEALTHY", "bare": "HEALTHY"} {
		if c, _ := v.Container(name); c.Health.Status != want {
			t.Errorf("%s: %+v, want %s", name, c.Health, want)
		}
	}
	if _, body := s.request("GET", s.base("none"), ""); strings.Contains(body, "Health") {
		t.Errorf("NONE: %s", body)
	}
}

func TestConformanceProbeRunsAsTheContainersUser(t *testing.T) {
	t.Parallel()
	a := checked(helper("a", "run", "0s", "0"), 1, "CMD", "/bin/helper", "whoami")
	a.User, a.WorkingDirectory = "5995", "/work/here"
	named := checked(helper("b", "run", "0s", "0"), 1, "CMD-SHELL", "/bin/helper whoami")
	named.User = "envoy:5996"
	w := newTools(t, func(o *Options) {
		tools := o.Images["tools"]
		tools.Users = map[string]string{"envoy": "5995:5990"}
		o.Images["tools"] = tools
	})
	s := w.startTask(t, nil, a, named)
	v := s.until("both HEALTHY", func(v scheduler.View) bool {
		return v.Containers[0].Health.Status == "HEALTHY" && v.Containers[1].Health.Status == "HEALTHY"
	})
	for i, want := range []string{"uid 5995 gid 5990 in /work/here\n", "uid 5995 gid 5996 in /\n"} {
		if got := v.Containers[i].Health.Output; got != want {
			t.Errorf("probe is %q, want %q", got, want)
		}
	}
}

func TestConformanceMissingProbeIs255(t *testing.T) {
	t.Parallel()
	s := startTask(t, nil, checked(helper("a", "run", "0s", "0"), 1, "CMD", "/bin/missing"))
	v := s.until("UNHEALTHY", func(v scheduler.View) bool { return v.Containers[0].Health.Status == "UNHEALTHY" })
	if h := v.Containers[0].Health; h.ExitCode != 255 || !strings.HasPrefix(h.Output, "OCI runtime exec failed: ") {
		t.Errorf("%+v", h)
	}
}

// The probes of a read-only container run in the same read-only root.
func TestProbeSeesTheReadOnlyRoot(t *testing.T) {
	t.Parallel()
	a := checked(helper("a", "run", "0s", "0"), 1, "CMD-SHELL", "echo x > /x")
	yes := true
	a.ReadonlyRootFilesystem = &yes
	s := startTask(t, nil, a)
	v := s.until("UNHEALTHY", func(v scheduler.View) bool { return v.Containers[0].Health.Status == "UNHEALTHY" })
	if h := v.Containers[0].Health; !strings.Contains(h.Output, "Read-only file system") {
		t.Errorf("%+v", h)
	}
}

func TestConformanceEntryPointAndCommand(t *testing.T) {
	t.Parallel()
	w := newTools(t, func(o *Options) {
		tools := o.Images["tools"]
		tools.Entrypoint, tools.Cmd = []string{"/bin/helper", "print", "image"}, []string{"cmd"}
		o.Images["tools"] = tools
	})
	entry, command := []string{"/bin/helper", "print", "own"}, []string{"word"}
	s := w.startTask(t, nil,
		optional(taskdef.Container{Name: "neither", Image: "tools"}),
		optional(taskdef.Container{Name: "entry", Image: "tools", EntryPoint: entry}),
		optional(taskdef.Container{Name: "command", Image: "tools", Command: command}),
		optional(taskdef.Container{Name: "both", Image: "tools", EntryPoint: entry, Command: command}))
	s.stopped()
	for name, want := range map[string]string{
		"neither": `["image" "cmd"]`, "entry": `["own"]`, "command": `["image" "word"]`, "both": `["own" "word"]`,
	} {
		if got := strings.TrimSpace(s.log(name)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// An image without ENTRYPOINT runs the command, and no shell comes between.
func TestConformanceCommandAlone(t *testing.T) {
	t.Parallel()
	w := newTools(t, func(o *Options) {
		o.Images["cmd"] = runtime.Image{Name: "cmd", Programs: o.Images["tools"].Programs, Env: o.Images["tools"].Env, Cmd: []string{"/bin/helper", "print", "$HOME; x"}}
	})
	s := w.startTask(t, nil, taskdef.Container{Name: "a", Image: "cmd"})
	s.stopped()
	if got := s.log("a"); got != "[\"$HOME; x\"]\n" {
		t.Errorf("%s", got)
	}
}

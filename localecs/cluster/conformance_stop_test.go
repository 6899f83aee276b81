package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/taskdef"
)

func TestConformanceDependencyIsSignalledLast(t *testing.T) {
	t.Parallel()
	s := startTask(t, nil, helper("a", "net", "listen=:9000"), after(lingering("b"), "a", "START")).await("a", "b").end()
	s.terminated("b")
	// a still answers while b takes its time.
	c, err := s.Dial(t.Context(), "tcp", "127.0.0.1:9000")
	if err != nil {
		t.Errorf("a does not answer: %v", err)
	} else {
		c.Close()
	}
	if got := times(s.log("a"), "SIGTERM"); len(got) != 0 || s.container("a").DesiredStatus != "STOPPED" {
		t.Errorf("a has TERM at %v already; desired %s", got, s.container("a").DesiredStatus)
	}
	s.release("b")
	s.stopped()
	between(t, "TERM of a after b's end", s.signalled("a").Sub(s.container("b").FinishedAt), 0, 0)
	if s.code("b") != 0 {
		t.Errorf("b exited %d, want its own 0", s.code("b"))
	}
}

func TestConformanceContainerThatIgnoresTERMIsKilledAtStopTimeout(t *testing.T) {
	t.Parallel()
	s := startTask(t, nil, deaf("a", 5))
	s.until("RUNNING", running)
	v := s.end().stopped()
	if s.code("a") != 137 {
		t.Errorf("exit code %d, want 137", s.code("a"))
	}
	between(t, "a's end", s.container("a").FinishedAt.Sub(v.StoppingAt), 5*time.Second, 5*time.Second)
	waiting := s.seen(func(m sample) bool { return m.began.After(v.StoppingAt) && m.container("a").KnownStatus == "RUNNING" })
	if len(waiting) == 0 {
		t.Fatal("no sample of the wait")
	}
	for _, m := range waiting {
		testkit.Equal(t, "desired status of a", m.container("a").DesiredStatus, "STOPPED")
		testkit.Equal(t, "desired status", m.DesiredStatus, "STOPPED")
		testkit.Equal(t, "executionStoppedAt", m.ExecutionStoppedAt, nil)
	}
}

func TestConformanceOwnExitCode(t *testing.T) {
	t.Parallel()
	s := startTask(t, nil, helper("a", "run", "1s", "7")).await("a")
	v := s.end().stopped()
	testkit.Equal(t, "exit code", s.code("a"), 7)
	testkit.Equal(t, "stop code", v.StopCode, "UserInitiated")
	testkit.Equal(t, "stopped reason", v.StoppedReason, "bye")
	between(t, "a's end", s.container("a").FinishedAt.Sub(v.StoppingAt), time.Second, time.Second)
}

func TestConformanceSignalsAtPID1(t *testing.T) {
	t.Parallel()
	yes := true
	supervised := deaf("init", 20)
	supervised.LinuxParameters = &taskdef.LinuxParameters{InitProcessEnabled: &yes}
	s := startTask(t, nil, deaf("sleep", 1), supervised, helper("go", "block")).await("go")
	s.until("RUNNING", running)
	v := s.end().stopped()
	for name, want := range map[string]int{"sleep": 137, "init": 143, "go": 143} {
		if got := s.code(name); got != want {
			t.Errorf("%s: exit code %d, want %d", name, got, want)
		}
	}
	between(t, "the end under init", s.container("init").FinishedAt.Sub(v.StoppingAt), 0, 0)
}

func TestConformanceOnlyPID1GetsTERM(t *testing.T) {
	t.Parallel()
	s := startTask(t, nil, taskdef.Container{Name: "a", Image: "tools", EntryPoint: []string{"/bin/sh", "-c", `
		(trap 'echo child SIGTERM 1' TERM; echo child ready 1; while :; do sleep 0.02; done) &
		trap 'echo parent SIGTERM 1; exit 9' TERM
		echo parent ready 1
		while :; do sleep 0.02; done`}})
	testkit.Eventually(t, "both are ready", func() bool { return len(times(s.log("a"), "ready")) == 2 })
	s.end().stopped()
	testkit.Equal(t, "exit code", s.code("a"), 9)
	if got := s.log("a"); !strings.Contains(got, "parent SIGTERM") || strings.Contains(got, "child SIGTERM") {
		t.Errorf("log:\n%s\nwant SIGTERM of the parent only", got)
	}
}

func TestConformanceStopSignalOfTheImage(t *testing.T) {
	t.Parallel()
	w := newTools(t, func(o *Options) {
		tools := o.Images["tools"]
		tools.StopSignal = "SIGINT"
		o.Images["tools"] = tools
	})
	s := w.startTask(t, nil, helper("a", "run", "0s", "0")).await("a")
	s.end().stopped()
	if got := s.log("a"); !strings.Contains(got, "SIGINT") || strings.Contains(got, "SIGTERM") {
		t.Errorf("%s", got)
	}
}

func TestConformanceNonEssentialExitKeepsDesiredRUNNING(t *testing.T) {
	t.Parallel()
	s := startTask(t, nil, optional(helper("a", "exit", "1", "300ms")), helper("b", "run", "0s", "0")).await("b")
	s.until("a STOPPED", func(scheduler.View) bool { return s.code("a") == 1 })
	// b may have started after a's end.
	afterwards := func(m sample) bool {
		return m.container("a").KnownStatus == "STOPPED" && m.container("b").KnownStatus == "RUNNING" && m.KnownStatus == "RUNNING"
	}
	testkit.Eventually(t, "three samples afterwards", func() bool { return len(s.seen(afterwards)) >= 3 })
	for _, m := range s.seen(afterwards) {
		a := m.container("a")
		testkit.Equal(t, "desired status of a", a.DesiredStatus, "RUNNING")
		if a.ExitCode == nil || *a.ExitCode != 1 {
			t.Errorf("a %+v, want exit code 1", a)
		}
		if a.FinishedAt == nil {
			t.Errorf("a %+v, want its end", a)
		}
		testkit.Equal(t, "networks of a", len(a.Networks), 1)
		testkit.Equal(t, "desired status", m.DesiredStatus, "RUNNING")
		testkit.Equal(t, "desired status of b", m.container("b").DesiredStatus, "RUNNING")
		testkit.Equal(t, "executionStoppedAt", m.ExecutionStoppedAt, nil)
	}
	if got := times(s.log("b"), "SIGTERM"); len(got) != 0 {
		t.Errorf("b got TERM at %v", got)
	}
}

func TestConformanceEndpointsAnswerWhileStopping(t *testing.T) {
	t.Parallel()
	s := startTask(t, withRole, helper("a", "run", "0s", "0"), after(lingering("b"), "a", "START")).await("a", "b").end()
	s.terminated("b")
	for _, url := range []string{s.base("a"), s.base("b") + "/task", s.credentialsURL()} {
		if code, body := s.request("GET", url, ""); code != 200 {
			t.Errorf("%s: %d: %s", url, code, body)
		}
	}
	if s.container("b").KnownStatus != "RUNNING" {
		t.Error("b had ended before")
	}
	s.release("b")
	s.stopped()
	if code, body, err := s.try(t.Context(), "GET", s.base("a"), ""); err == nil {
		t.Errorf("after the end: %d: %s", code, body)
	}
}

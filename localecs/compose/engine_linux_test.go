package compose_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/internal/testkit/dockerengine"
	"github.com/meshtask/consul-ecs/localecs/compose"
)

// TestProject follows the containers of a project through their lives.
func TestProject(t *testing.T) {
	e := dockerengine.Start(t)
	image := e.Image(t, "hello", map[string]string{"/hello": testkit.Programs(t) + "/hello"}, nil)
	network := e.Run(t, "network", "create", "--label", e.ID, "--subnet=10.99.0.0/24", e.ID+"-net")
	create := func(name string, args ...string) string {
		t.Helper()
		labels := []string{"--label", "com.docker.compose.project=" + e.ID, "--label", "com.meshtask.localecs.task=web", "--label", "com.meshtask.localecs.container=" + name}
		return e.Run(t, append(append([]string{"create"}, labels...), args...)...)
	}
	holder := create("", "--network", network, "--ip", "10.99.0.7", image, "/hello", "api", "0.0.0.0:80")
	app := create("app", "--network", "container:"+holder, "--stop-signal", "INT", "--restart", "on-failure:3", "--health-interval=100ms", "--health-retries=1",
		"--health-cmd", "/hello", "--health-timeout=5s", image, "/hello", "api", "0.0.0.0:81")
	create("job", "--label", "com.docker.compose.oneoff=True", "--network=none", image, "/hello")

	p, err := compose.Dial(t.Context(), e.Host, "", holder[:12])
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	before := containers(t, p)
	if len(before) != 2 || before["app"].Status != "created" {
		t.Fatalf("containers %+v, want two, and app created", before)
	}
	if start := before["app"].StartedAt; !start.IsZero() {
		t.Fatalf("app started at %s", start)
	}

	asked := watch(t, p)
	e.Run(t, "start", holder, app)
	var now map[string]compose.Container
	testkit.Eventually(t, "the check has failed", func() bool { // there is no shell in which it could run
		now = containers(t, p)
		return now["app"].Health != nil && now["app"].Health.Status == "unhealthy"
	})
	c := now["app"]
	testkit.Equal(t, "status of app", c.Status, "running")
	if c.StartedAt.IsZero() || !c.FinishedAt.IsZero() {
		t.Errorf("app started at %s, finished at %s; want a start only", c.StartedAt, c.FinishedAt)
	}
	if c.Health.ExitCode == 0 || c.Health.At.IsZero() {
		t.Errorf("health %+v, want a time and an exit code", c.Health)
	}
	if !strings.HasPrefix(c.Image, "sha256:") {
		t.Errorf("image %s, want its ID", c.Image)
	}
	if n := now[""].Networks; len(n) != 1 || n[0].MAC == nil {
		t.Errorf("networks %+v, want one with a MAC address", n)
	} else {
		got := [3]string{n[0].IP.String(), n[0].CIDR.String(), n[0].Gateway.String()}
		testkit.Equal(t, "network", got, [3]string{"10.99.0.7", "10.99.0.0/24", "10.99.0.1"})
	}
	if s := p.Stats(t.Context(), app); s == nil {
		t.Error("no figures of app")
	} else if s.Memory.Usage == 0 || s.CPU.Usage.Total == 0 {
		t.Errorf("memory %+v, CPU %+v", s.Memory, s.CPU)
	}
	if s := p.Stats(t.Context(), "none"); s != nil {
		t.Errorf("stats of none %+v", s)
	}

	e.Run(t, "kill", "-s", "HUP", holder) // no request to stop
	if err := p.Stop(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	a := <-asked
	testkit.Equal(t, "container asked to stop", [2]string{a.Task, a.Container}, [2]string{"web", "app"})
	if a.At.Before(now["app"].StartedAt) || time.Since(a.At) > time.Minute {
		t.Errorf("asked at %s, started at %s", a.At, now["app"].StartedAt)
	}
	if c := containers(t, p)["app"]; c.Status != "exited" || c.FinishedAt.Before(c.StartedAt) {
		t.Errorf("app %+v", c)
	}
	if err := p.Stop(t.Context(), "none"); err != nil {
		t.Errorf("stop of none: %v", err)
	}
	refused(t, e, network, image)
}

// refused checks that a network refuses to be dialled.
func refused(t *testing.T, e *dockerengine.Engine, network, image string) {
	t.Helper()
	alone := e.Run(t, "create", "--label", e.ID, "--network", network, image, "/hello")
	for name, c := range map[string]struct{ host, self, want string }{
		"no engine":    {"unix:///nonexistent.sock", "x", "ping the Docker engine at unix:///nonexistent.sock: "},
		"no URL":       {"nonsense", "x", "use the Docker engine at nonsense: "},
		"no container": {e.Host, "nobody", "find the project: the engine has no container nobody: set -project"},
		"no project":   {e.Host, alone, "find the project: container " + alone + " has no label com.docker.compose.project: set -project"},
	} {
		if _, err := compose.Dial(t.Context(), c.host, "", c.self); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func containers(t *testing.T, p *compose.Project) map[string]compose.Container {
	t.Helper()
	list, err := p.Containers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]compose.Container{}
	for _, c := range list {
		byName[c.Name] = c
	}
	return byName
}

// watch prints who was asked to stop, until the test's end.
func watch(t *testing.T, p *compose.Project) <-chan *compose.StopRequest {
	ctx, cancel := context.WithCancel(t.Context())
	asked, done := make(chan *compose.StopRequest, 10), make(chan error, 1)
	go func() {
		done <- p.Watch(ctx, func(a *compose.StopRequest) {
			if a != nil {
				asked <- a
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != context.Canceled {
			t.Errorf("watch: %v", err)
		}
	})
	return asked
}

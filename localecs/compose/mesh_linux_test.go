package compose_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/internal/testkit/dockerengine"
)

func TestMain(m *testing.M) {
	testkit.RunRole(dockerengine.Roles())
	os.Exit(m.Run())
}

// mesh is the compose example in an engine.
type mesh struct {
	*dockerengine.Engine
	compose string
	env     []string
}

// TestComposeExample brings the mesh of examples/compose up with docker compose,
// has a request answered through it, and takes it down in order.
func TestComposeExample(t *testing.T) {
	testkit.Long(t)
	m := &mesh{Engine: dockerengine.Start(t), compose: testkit.RequireBinary(t, "docker-compose")}
	m.images(t)
	m.limits(t)
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := m.do("logs", "--no-color", "--tail=40")
			t.Log(out.Stdout + out.Stderr)
		}
		m.do("down", "-v", "-t", "2")
	})
	m.mustDo(t, "up", "-d")
	testkit.Within(t, dockerengine.Limit, "web answers through the mesh", func() bool { return m.web() == 0 })

	// An essential container ends, and the agent ends its task, in order.
	before := m.inConsul(t)
	m.Run(t, "kill", "-s", "KILL", m.container(t, "api-2-api"))
	testkit.Within(t, dockerengine.Limit, "the whole task has ended", func() bool {
		return m.running(t, "api-2") == 0
	})
	m.inOrder(t, "api-2", "api-2-api", "api-2-sidecar-proxy", "api-2-consul-client", "api-2")
	codes := m.exitCodes(t, "api-2")
	for name, want := range map[string]int{"api-2-api": 137, "api-2-sidecar-proxy": 0, "api-2-consul-client": 0} {
		testkit.Equal(t, "exit code of "+name, codes[name], want)
	}
	if after := m.inConsul(t); len(before.tokens)-len(after.tokens) != 2 {
		t.Errorf("tokens before %v, after %v, want two less", before.tokens, after.tokens)
	}
	if m.web() != 0 {
		t.Error("web does not answer by the other instance")
	}

	// No process cleans up after those that stop now.
	m.mustDo(t, "stop", "controller-acl-controller")
	m.mustDo(t, append([]string{"stop"}, m.services(t, "web", "api-1")...)...)
	for _, task := range []string{"web", "api-1"} {
		for service, code := range m.exitCodes(t, task) {
			if code != 0 {
				t.Errorf("%s ended with %d", service, code)
			}
		}
		m.inOrder(t, task, task+"-"+strings.TrimSuffix(task, "-1"), task+"-sidecar-proxy", task+"-consul-client", task)
	}
	if left := m.inConsul(t); len(left.tokens) > 0 || len(left.services) > 0 {
		t.Errorf("left in Consul: tokens %v, services %v", left.tokens, left.services)
	}
	// And once more, with the volumes of the first time.
	m.mustDo(t, "up", "-d")
	testkit.Within(t, dockerengine.Limit, "web answers again", func() bool { return m.web() == 0 })
	m.mustDo(t, "down", "-v")
	for _, kind := range []string{"ps -aq", "network ls -q", "volume ls -q"} {
		args := append(strings.Fields(kind), "--filter", "label=com.docker.compose.project="+m.ID)
		if left := m.Run(t, args...); left != "" {
			t.Errorf("%s: %s", kind, left)
		}
	}
}

// do runs docker compose on the example.
func (m *mesh) do(args ...string) (dockerengine.Output, int) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*dockerengine.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, m.compose, args...)
	cmd.Dir, cmd.Env = filepath.Join(testkit.Root(), "examples", "compose"), slices.Concat(m.Env, m.env)
	return dockerengine.Finish(cmd)
}

func (m *mesh) mustDo(t *testing.T, args ...string) string {
	t.Helper()
	out, code := m.do(args...)
	if code != 0 {
		t.Fatalf("docker-compose %s: exit code %d: %s%s", strings.Join(args, " "), code, out.Stdout, out.Stderr)
	}
	return out.Stdout
}

// web asks web, from beside it, and returns the exit code.
func (m *mesh) web() int {
	id, _ := m.do("ps", "-q", "web")
	_, code := m.Try("run", "--rm", "--label", m.ID, "--network=container:"+strings.TrimSpace(id.Stdout), m.ID+"hello", "get", "http://127.0.0.1:8080/")
	return code
}

// container returns the ID of a service's.
func (m *mesh) container(t *testing.T, service string) string {
	t.Helper()
	return strings.TrimSpace(m.mustDo(t, "ps", "-q", service))
}

// services returns the services of the tasks, their network included.
func (m *mesh) services(t *testing.T, tasks ...string) (all []string) {
	t.Helper()
	for _, s := range strings.Fields(m.mustDo(t, "config", "--services")) {
		if slices.ContainsFunc(tasks, func(task string) bool { return s == task || strings.HasPrefix(s, task+"-") }) {
			all = append(all, s)
		}
	}
	return all
}

// inOrder checks that services of a task have ended one after the other.
func (m *mesh) inOrder(t *testing.T, task string, services ...string) {
	t.Helper()
	states := m.states(t, task)
	for i := range services[1:] {
		first, then := services[i], services[i+1]
		if states[first].FinishedAt.IsZero() || states[first].FinishedAt.After(states[then].FinishedAt) {
			t.Errorf("%s ended at %s, %s at %s", first, states[first].FinishedAt, then, states[then].FinishedAt)
		}
	}
}

// state is a container's in the engine.
type state struct {
	Running    bool
	ExitCode   int
	FinishedAt time.Time
}

// states returns the states of a task's containers by service.
func (m *mesh) states(t *testing.T, task string) map[string]state {
	t.Helper()
	ids := strings.Fields(m.Run(t, "ps", "-aq", "--filter", "label=com.docker.compose.project="+m.ID, "--filter", "label=com.meshtask.localecs.task="+task))
	var all []struct {
		Config struct{ Labels map[string]string }
		State  state
	}
	if err := json.Unmarshal([]byte(m.Run(t, append([]string{"inspect"}, ids...)...)), &all); err != nil {
		t.Fatal(err)
	}
	states := map[string]state{}
	for _, c := range all {
		states[c.Config.Labels["com.docker.compose.service"]] = c.State
	}
	return states
}

func (m *mesh) running(t *testing.T, task string) (n int) {
	for _, s := range m.states(t, task) {
		if s.Running {
			n++
		}
	}
	return n
}

func (m *mesh) exitCodes(t *testing.T, task string) map[string]int {
	codes := map[string]int{}
	for service, s := range m.states(t, task) {
		codes[service] = s.ExitCode
	}
	return codes
}

// left is what tasks have in Consul.
type left struct{ tokens, services []string }

// inConsul asks the server for login tokens and services.
func (m *mesh) inConsul(t *testing.T) (l left) {
	t.Helper()
	server := m.container(t, "consul")
	var tokens []struct{ Description, AuthMethod string }
	if err := json.Unmarshal([]byte(m.Run(t, "exec", server, "/bin/consul", "acl", "token", "list", "-format=json")), &tokens); err != nil {
		t.Fatal(err)
	}
	for _, token := range tokens {
		if token.AuthMethod != "" {
			l.tokens = append(l.tokens, token.AuthMethod+" "+token.Description)
		}
	}
	services := strings.Fields(m.Run(t, "exec", server, "/bin/consul", "catalog", "services"))
	l.services = slices.DeleteFunc(services, func(s string) bool { return s == "consul" })
	return l
}

// images makes the example's images of what is on this machine.
func (m *mesh) images(t *testing.T) {
	t.Helper()
	bin := testkit.Programs(t)
	dirs := []dockerengine.Dir{{Path: "/consul", Mode: 0o755, Owner: 5996}, {Path: "/tmp", Mode: 0o1777}}
	m.Image(t, "consul", map[string]string{"/bin/consul": testkit.RequireBinary(t, "consul")}, dirs)
	m.Image(t, "envoy", map[string]string{"/usr/local/bin/envoy": testkit.RequireBinary(t, "envoy")}, dirs)
	m.Image(t, "consul-ecs", map[string]string{"/bin/consul-ecs": bin + "/consul-ecs"}, dirs,
		"USER 5996:5996", "VOLUME /consul", `ENTRYPOINT ["/bin/consul-ecs"]`)
	for _, target := range []string{"localecs", "hello"} {
		m.Run(t, "build", "--target", target, "-t", m.ID+target, "-f", filepath.Join(testkit.Root(), "examples/compose/Dockerfile"), bin)
	}
	for variable, name := range map[string]string{
		"CONSUL_IMAGE": "consul", "ENVOY_IMAGE": "envoy", "CONSUL_ECS_IMAGE": "consul-ecs", "LOCALECS_IMAGE": "localecs", "HELLO_IMAGE": "hello",
	} {
		m.env = append(m.env, variable+"="+m.ID+name)
	}
	m.env = append(m.env, "COMPOSE_PROJECT_NAME="+m.ID, "DOCKER_SOCKET="+strings.TrimPrefix(m.Host, "unix://"), "WEB_PORT=0", "CONSUL_PORT=0")
}

// limits makes Envoys be content with fewer open files, where this machine cannot give what the task definitions ask
// for.
func (m *mesh) limits(t *testing.T) {
	t.Helper()
	var have syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &have); err != nil {
		t.Fatal(err)
	}
	if have.Max >= 65535 {
		return
	}
	text := "services:\n"
	for _, task := range []string{"web", "api-1", "api-2"} {
		text += fmt.Sprintf("  %s-sidecar-proxy: {ulimits: {nofile: {soft: %d, hard: %d}}}\n", task, have.Max, have.Max)
	}
	file := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	m.env = append(m.env, "COMPOSE_FILE=tasks.yaml:mesh.yaml:"+file)
}

package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/internal/testkit/dockerengine"
)

// The demo runs in containers of an engine as it does with processes, and so does a
// definition whose image is the engine's.
func TestEndToEndInDocker(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	engine := dockerengine.Start(t)
	vars := programs(t)
	state := t.TempDir()
	run := func(args ...string) (string, int) {
		cmd := exec.Command("/proc/self/exe")
		cmd.Args = append(testkit.SelfArgs("localecs", "run", "-runtime", "docker", "-dir", state), args...)
		cmd.Env = append(os.Environ(), "DOCKER_HOST="+engine.Host)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	t.Run("hello-mesh", func(t *testing.T) {
		out, code := run(append(vars, filepath.Join(testkit.Root(), "examples", "hello-mesh"))...)
		if code != 0 || !strings.Contains(out, "hello-mesh: all checks passed in ") {
			t.Fatalf("exit code %d\n%s", code, out)
		}
		for _, list := range [][]string{{"ps", "-a"}, {"volume", "ls"}} {
			if left := engine.Run(t, append(list, "--format", `{{.Label "localecs.dir"}}`)...); strings.Contains(left, state) {
				t.Errorf("%s: something is left of %s", list, left)
			}
		}
	})
	t.Run("image of the engine", func(t *testing.T) {
		dir := t.TempDir()
		write := func(name, text string) string {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			return path
		}
		write("Dockerfile", "FROM localecs/hello\nENTRYPOINT [\"/hello\", \"get\"]\nENV PORT=1\n")
		name := engine.ID + "-job"
		engine.Run(t, "build", "-t", name, dir)
		definition := write("job.json", `{"family": "job", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "256", "memory": "512",
			"containerDefinitions": [{"name": "job", "image": "`+name+`", "command": ["http://169.254.170.2/v2/none"]}]}`)
		// It has no such path there: the program's own exit code says so.
		if out, code := run(definition); code != 2 || !strings.Contains(out, "job") || strings.Contains(out, "Cannot") {
			t.Errorf("exit code %d\n%s", code, out)
		}
		insideEngine(t, engine, definition)
		missing := write("none.json", strings.Replace(`{"family": "none", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "256", "memory": "512",
			"containerDefinitions": [{"name": "none", "image": "registry.example.com/none:1"}]}`, "\t", "", -1))
		if out, code := run(missing); code != 2 || !strings.Contains(out, "CannotPullContainerError: ") || !strings.Contains(out, "registry.example.com") {
			t.Errorf("exit code %d\n%s", code, out)
		}
	})
}

// insideEngine runs localecs itself in a container of the engine, for users who are not
// root on its host. Where it can be had, --privileged is all of that.
func insideEngine(t *testing.T, engine *dockerengine.Engine, definition string) {
	t.Helper()
	dir := filepath.Dir(definition)
	testkit.PublicCopy(t, dir, filepath.Join(testkit.Programs(t), "localecs"))
	out, code := engine.Try("run", "--rm", "--label", engine.ID, "--cap-add", "NET_ADMIN", "--cap-add", "SYS_ADMIN", "--cap-add", "SYS_PTRACE",
		"--security-opt", "seccomp=unconfined", "--security-opt", "systempaths=unconfined", "--pid", "host", "--network", "host",
		"-v", strings.TrimPrefix(engine.Host, "unix://")+":/var/run/docker.sock", "-v", dir+":"+dir, "-w", dir,
		"--entrypoint", dir+"/localecs", "localecs/hello", "run", "-runtime", "docker", "-dir", dir+"/state", definition)
	if code != 2 || !strings.Contains(out.Stdout, "answered 404 Not Found") {
		t.Errorf("in a container of the engine: exit code %d\n%s%s", code, out.Stdout, out.Stderr)
	}
}

// A wrong request for an engine fails before anything is changed.
func TestDockerRuntimeRefused(t *testing.T) {
	t.Parallel()
	scene := filepath.Join(testkit.Root(), "examples", "hello-mesh")
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"run", "-runtime", "podman", scene}, 1, `-runtime: "podman": want process or docker`},
		{[]string{"serve", "-runtime", "podman"}, 1, `-runtime: "podman": want process or docker`},
		{[]string{"run", "-runtime", "docker", "-network", "host", scene}, 1, "-runtime docker and -network host are mutually exclusive"},
		{[]string{"serve", "-runtime", "docker", "-simulated"}, 1, "-runtime and -simulated are mutually exclusive"},
	} {
		if got := call(t, tt.args...); got.code != tt.code || !strings.Contains(got.stderr, tt.want) {
			t.Errorf("%v: %+v", tt.args, got)
		}
	}
}

package command

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// ending is how a command ended.
type composeEnding struct {
	code           int
	stdout, stderr string
}

func callCompose(env map[string]string, args ...string) composeEnding {
	app := cli.App{Name: "localecs", Commands: map[string]cli.Command{"compose": composeCommand(), "endpoints": endpoints(), "pause": pause()}}
	var stdout, stderr bytes.Buffer
	code := cli.Main(app, args, func(name string) string { return env[name] }, strings.NewReader(""), &stdout, &stderr)
	return composeEnding{code, stdout.String(), stderr.String()}
}

// The example's file is what localecs compose makes of the definitions now, as
// its first line says.
func TestExampleIsUpToDate(t *testing.T) {
	t.Chdir(testkit.Root())
	const file = "examples/compose/tasks.yaml"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	command, ok := strings.CutPrefix(line, "# Made by: localecs compose ")
	if !ok {
		t.Fatalf("first line %q", line)
	}
	got := callCompose(nil, append([]string{"compose"}, strings.Fields(command)...)...)
	if got.code != 0 || got.stdout != "" {
		t.Fatalf("%+v", got)
	}
	const warning = "localecs compose: warning: ../hello-mesh/web.json: $.containerDefinitions[1].restartPolicy.restartAttemptPeriod: "
	if !strings.HasPrefix(got.stderr, warning) || strings.Count(got.stderr, "\n") != 4 {
		t.Errorf("warnings %s", got.stderr)
	}
	made, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(data), string(made)); diff != "" {
		t.Errorf("the example was not up to date; it is now (-was +is):\n%s", diff)
	}
}

// docker-compose takes the example's files together.
func TestExampleIsValid(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), testkit.RequireBinary(t, "docker-compose"), "config")
	cmd.Dir = filepath.Join(testkit.Root(), "examples", "compose")
	cmd.Env = append(os.Environ(), "DOCKER_HOST=unix:///nonexistent")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("docker-compose config: %v", err)
	}
	for _, want := range []string{"image: hashicorp/consul:1.20.1", "image: envoyproxy/envoy:v1.40.0", "image: consul-ecs:1.0.0-beta.1", "image: localecs:1.0.0-beta.1", "image: example/hello:1"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("docker-compose config lacks %q", want)
		}
	}
}

const good = `{"family": "web", "networkMode": "awsvpc", "containerDefinitions": [{"name": "a", "image": "i", "memory": 64}]}`

// Whatever is wrong is said completely, and nothing is written.
func TestBadComposeInputIsRefusedCompletely(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"good.json": good,
		"bad.json":  `{"family": "bad", "containerDefinitions": [{"name": "a", "memory": 64, "dependsOn": [{"containerName": "b", "condition": "START"}]}, {"name": "a", "image": "i", "memory": 64}]}`,
		"yaml.json": "family: web", "x.yaml": "nmae: x",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		args []string
		want []string // lines
	}{
		"nothing": {[]string{"compose"}, []string{"name a task definition: localecs compose FILE"}},
		"several files": {[]string{"compose", "-setting", "DIR/x.yaml", "DIR/bad.json", "DIR/yaml.json", "other=DIR/bad.json", "DIR/none.json"}, []string{
			`scenario DIR/x.yaml: line 1, column 1: unknown key "nmae"; did you mean "name"?`,
			"task definition DIR/yaml.json: line 1, column 3: this looks like YAML, but ECS takes JSON; `yq -o=json` converts it",
			"read task definition: DIR/none.json: no such file or directory",
			"Cannot depend on container + 'b' because it does not exist ($.containerDefinitions[0].dependsOn[0].containerName",
		}},
		"twice":           {[]string{"compose", "DIR/good.json", "web=DIR/good.json"}, []string{"DIR/good.json: there are two tasks web; name them, NAME=FILE"}},
		"names":           {[]string{"compose", "-o", "DIR/out.yaml", "Web=DIR/good.json", "w_=DIR/good.json"}, []string{`DIR/good.json: task name "Web": want `, `DIR/good.json: task name "w_": want `}},
		"no setting":      {[]string{"compose", "-setting", "DIR/none", "DIR/good.json"}, []string{"-setting: stat DIR/none: no such file or directory"}},
		"endpoints":       {[]string{"endpoints", "-setting", "DIR/none"}, []string{"read scenario: DIR/none: no such file or directory", "want a task and its definition: localecs endpoints NAME=FILE"}},
		"ready":           {[]string{"endpoints", "-ready", "-listen", "80"}, []string{`-listen "80": want host:port or :port`}},
		"log level":       {[]string{"endpoints", "-log-level", "loud", "DIR/good.json"}, []string{"loud"}},
		"pause something": {[]string{"pause", "now"}, []string{"now"}},
	} {
		var args []string
		for _, a := range c.args {
			args = append(args, strings.ReplaceAll(a, "DIR", dir))
		}
		got := callCompose(nil, args...)
		said := strings.ReplaceAll(got.stderr, dir, "DIR")
		if got.code != exit.CodeUsage || got.stdout != "" {
			t.Errorf("%s: exit code %d, output %q", name, got.code, got.stdout)
		}
		for _, line := range c.want {
			if !strings.Contains(said, line) {
				t.Errorf("%s: lacks %q: %s", name, line, said)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "out.yaml")); err == nil {
		t.Error("a file was written")
	}
}

func TestFileGoesToStdout(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "web.json")
	if err := os.WriteFile(file, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	got := callCompose(nil, "compose", "shop="+file)
	if got.code != 0 || got.stderr != "" {
		t.Errorf("got %+v, want exit code 0 and no standard error", got)
	}
	if want := "\n  shop-a:\n    image: \"${I_IMAGE:-i}\"\n"; !strings.Contains(got.stdout, want) {
		t.Errorf("got %q, want %q in it", got.stdout, want)
	}
}

// Wherever the file goes, it finds the definitions.
func TestPathsAreThoseSeenFromTheFile(t *testing.T) {
	top := t.TempDir()
	work := filepath.Join(top, "work")
	if err := errors.Join(os.Mkdir(work, 0o700), os.WriteFile(filepath.Join(work, "web.json"), []byte(good), 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Chdir(work)
	for output, want := range map[string]string{
		"compose.yaml":                     "./web.json",
		"../compose.yaml":                  "./work/web.json",
		filepath.Join(top, "compose.yaml"): "./work/web.json",
	} {
		got := callCompose(nil, "compose", "-o", output, "web.json")
		text, err := os.ReadFile(output)
		if line := "\n      - \"" + want + ":/localecs/web.json:ro\"\n"; got.code != 0 || err != nil || !strings.Contains(string(text), line) {
			t.Errorf("-o %s: %+v, %v, lacks %q:\n%s", output, got, err, line, text)
		}
	}
}

// As root, a rename would put a file in the place of /dev/stdout.
func TestOutputToADeviceIsNotReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	definition, target, link := filepath.Join(dir, "web.json"), filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(definition, []byte(good), 0o600), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the target is made, then replaced
		if got := callCompose(nil, "compose", "-o", link, "shop="+definition); got.code != 0 {
			t.Fatalf("%+v", got)
		}
		text, err := os.ReadFile(target)
		if err != nil || strings.Count(string(text), "\n  shop-a:\n") != 1 {
			t.Errorf("target: %v, %q", err, text)
		}
		if st, err := os.Lstat(link); err != nil || st.Mode().Type() != os.ModeSymlink {
			t.Errorf("the link has become %v, %v", st.Mode(), err)
		}
	}
}

func TestUnreachableOrForeignEngines(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "web.json")
	if err := os.WriteFile(file, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	got := callCompose(map[string]string{"DOCKER_HOST": "unix:///nonexistent.sock"}, "endpoints", "-listen", "127.0.0.1:0", "-aws-listen", "127.0.0.1:0", "web="+file)
	if got.code != exit.CodeUnknown || !strings.Contains(got.stderr, "ping the Docker engine at unix:///nonexistent.sock: ") {
		t.Errorf("%+v", got)
	}
	if got := callCompose(nil, "endpoints", "-ready", "-listen", "127.0.0.1:1"); got.code != exit.CodeRefused || !strings.Contains(got.stderr, "connection refused") {
		t.Errorf("%+v", got)
	}
}

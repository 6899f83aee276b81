package command

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// definitionFile writes a task definition of one container, which a shell runs.
func definitionFile(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "job.json")
	words, err := json.Marshal([]string{"sh", "-c", script})
	if err != nil {
		t.Fatal(err)
	}
	text := `{"family": "job", "networkMode": "awsvpc", "containerDefinitions": [{"name": "job", "image": "any:1", "memory": 64, "stopTimeout": 120, "command": ` + string(words) + `}]}`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// ended is a run of a definition: its output, and whether and how it ended.
type ended struct {
	lines  []string
	stderr string
	code   int
}

// runAlone runs a definition and sends the signals, one whenever the container has
// written a line.
func runAlone(t *testing.T, path string, signals []syscall.Signal, flags ...string) ended {
	t.Helper()
	if os.Getuid() != 0 {
		testkit.Missing(t, "network namespaces need root")
	}
	testkit.RequireOnPath(t, "sh", "sleep")
	args := testkit.SelfArgs("localecs", append(append([]string{"run", "-dir", t.TempDir(), "-image", "any:1=sh,sleep"}, flags...), path)...)
	cmd := exec.Command(args[0], args[1:]...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var e ended
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		e.lines = append(e.lines, lines.Text())
		if strings.HasPrefix(lines.Text(), "job | ") && len(signals) > 0 {
			if err := cmd.Process.Signal(signals[0]); err != nil {
				t.Error(err)
			}
			signals = signals[1:]
		}
	}
	_ = cmd.Wait() // the code says it
	e.stderr, e.code = stderr.String(), cmd.ProcessState.ExitCode()
	return e
}

func TestTaskDefinitionsRunAlone(t *testing.T) {
	t.Parallel()
	const patient = `trap 'echo stopping; sleep 1; exit 0' TERM; echo ready; while :; do sleep 0.1; done`
	for name, c := range map[string]struct {
		script  string
		signals []syscall.Signal
		code    int
		last    string // line of standard output
		stderr  string
	}{
		"a good end":     {"echo done", nil, 0, "job: all essential containers ended well in ", ""},
		"a bad end":      {"exit 7", nil, 2, "job: FAILED: job exited with 7", ""},
		"stopped":        {patient, []syscall.Signal{syscall.SIGINT}, 0, "job: all essential containers ended well in ", "localecs run: stopping the tasks as ECS does; a second signal kills everything at once\n"},
		"stopped by CI":  {patient, []syscall.Signal{syscall.SIGTERM}, 0, "job: all essential containers ended well in ", "localecs run: stopping the tasks as ECS does"},
		"stopped, twice": {`trap 'sleep 1; echo deaf' TERM; echo ready; while :; do sleep 0.1; done`, []syscall.Signal{syscall.SIGINT, syscall.SIGINT}, 3, "", "localecs run: stopped by signal interrupt\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := runAlone(t, definitionFile(t, c.script), c.signals)
			testkit.Equal(t, "exit code", e.code, c.code)
			if !strings.Contains(e.stderr, c.stderr) {
				t.Errorf("standard error: got %q, want %q in it", e.stderr, c.stderr)
			}
			if len(e.lines) == 0 {
				t.Fatal("got no line of standard output")
			}
			if last := e.lines[len(e.lines)-1]; !strings.HasPrefix(last, c.last) {
				t.Errorf("last line: got %q, want prefix %q", last, c.last)
			}
		})
	}
}

// The page that shows the run is written, and named in the report.
func TestTaskDefinitionsHaveATimeline(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := runAlone(t, definitionFile(t, "echo one"), nil, "-dir", dir)
	path := filepath.Join(dir, "job", "timeline.html")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	if !strings.Contains(string(page), `class="lane container"`) {
		t.Errorf("timeline of %d bytes: want a lane of the container in it", len(page))
	}
	if want := "Timeline: " + path; !slices.Contains(e.lines, want) {
		t.Errorf("output: got %q, want the line %q", e.lines, want)
	}
}

// TestTaskDefinitionsAsJSON: what a program reads of a run.
func TestTaskDefinitionsAsJSON(t *testing.T) {
	t.Parallel()
	e := runAlone(t, definitionFile(t, "echo one; echo two"), nil, "-json")
	var kinds []string
	var output []string
	for _, line := range e.lines {
		var object struct{ Kind, Task, Container, Text string }
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		kinds = append(kinds, object.Kind)
		if object.Kind == "output" {
			output = append(output, object.Task+"/"+object.Container+" "+object.Text)
		}
	}
	if diff := cmp.Diff([]string{"job/job one", "job/job two"}, output); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if e.code != 0 || kinds[0] != "scenario" || kinds[len(kinds)-1] != "report" || !slices.Contains(kinds, "task") || !slices.Contains(kinds, "status") {
		t.Errorf("exit code %d, kinds %q, %s", e.code, kinds, e.stderr)
	}
}

// TestCheckRunsNothing: what is wrong is reported as always, and what is right leaves no
// trace.
func TestCheckRunsNothing(t *testing.T) {
	t.Parallel()
	testkit.RequireOnPath(t, "sh")
	dir := filepath.Join(t.TempDir(), "state")
	path := definitionFile(t, "exit 7")
	if got := call(t, "run", "-check", "-dir", dir, path); got.code != 1 || !strings.Contains(got.stderr, "-image 'any:1=host'") {
		t.Errorf("without an image: %+v", got)
	}
	got := call(t, "run", "-check", "-dir", dir, "-image", "any:1=sh", path)
	testkit.Equal(t, "with an image", got, result{})
	scene := sceneFile(t, t.TempDir(), "scene.yaml", "name: scene\n")
	testkit.Equal(t, "a scenario", call(t, "run", "-check", "-dir", dir, scene), result{})
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("a directory was made: %v", err)
	}
}

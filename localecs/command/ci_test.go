package command

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// shown returns a fenced block of docs/localecs/how-to.md that begins with a comment that names its file.
func shown(t *testing.T, language, file string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(testkit.Root(), "docs", "localecs", "how-to.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```" + language + "\n(# " + regexp.QuoteMeta(file) + "\n.*?)```").FindSubmatch(page)
	if found == nil {
		t.Fatalf("docs/localecs/how-to.md has no block %s", file)
	}
	return string(found[1])
}

// checkout is a team's repository: its task definitions, its mesh, and the scripts of the page.
type checkout struct {
	t   *testing.T
	dir string
	env []string
}

func newCheckout(t *testing.T) *checkout {
	t.Helper()
	if os.Getuid() != 0 {
		testkit.Missing(t, "network namespaces need root")
	}
	c := &checkout{t: t, dir: t.TempDir()}
	root, bin := testkit.Root(), testkit.Programs(t)
	for from, to := range map[string]string{"definitions": "taskdefs", "hello-mesh": "mesh"} {
		if err := os.CopyFS(filepath.Join(c.dir, to), os.DirFS(filepath.Join(root, "examples", from))); err != nil {
			t.Fatal(err)
		}
	}
	scene := filepath.Join("mesh", "scenario.yaml")
	text, err := os.ReadFile(filepath.Join(c.dir, scene))
	if err != nil {
		t.Fatal(err)
	}
	c.write(scene, strings.Replace(string(text), "\nsubnet:", "\ngatePeriod: 0s\nsubnet:", 1))
	for _, script := range []string{"ci/tasks.sh", "ci/tests-as-task.sh", "ci/mesh.sh"} {
		c.write(script, shown(t, "sh", script))
	}
	c.write("ci/tests.sh", `tries=0; until hello get "$1"; do [ $((tries += 1)) -lt 600 ] || exit 1; sleep 0.1; done; echo tested`)
	c.env = append(os.Environ(), "PATH="+bin+":"+filepath.Join(root, ".tools", "bin")+":"+os.Getenv("PATH"))
	return c
}

func (c *checkout) write(name, text string) {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		c.t.Fatal(err)
	}
}

// standin changes the script that stands in for the images' programs.
func (c *checkout) standin(old, replacement string) {
	c.t.Helper()
	name := filepath.Join("taskdefs", "standin")
	text, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil || !strings.Contains(string(text), old) {
		c.t.Fatalf("%s has no %q: %v", name, old, err)
	}
	c.write(name, strings.Replace(string(text), old, replacement, 1))
}

// job runs a script as a CI does, and returns its exit code and its output.
func (c *checkout) job(script string) (code int, output string) {
	c.t.Helper()
	cmd := exec.Command("sh", script)
	cmd.Dir, cmd.Env = c.dir, c.env
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		c.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// has fails for artefacts that are not there.
func (c *checkout) has(names ...string) {
	c.t.Helper()
	for _, name := range names {
		if st, err := os.Stat(filepath.Join(c.dir, name)); err != nil || st.Size() == 0 {
			c.t.Errorf("artefact %s: %v", name, err)
		}
	}
}

// failures returns the failures of the report, the last of the events.
func (c *checkout) failures(name string) []string {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		c.t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	var report struct {
		Kind     string
		Failures []string
	}
	if err := json.Unmarshal(lines[len(lines)-1], &report); err != nil || report.Kind != "report" {
		c.t.Fatalf("%s ends with %s: %v", name, lines[len(lines)-1], err)
	}
	return report.Failures
}

// TestJobOfTheManual runs what docs/localecs/how-to.md recommends for CI, and has it fail when it should: when the
// tests do, when what they test does, and when something is missing.
func TestJobOfTheManual(t *testing.T) {
	t.Parallel()
	c := newCheckout(t)
	code, output := c.job("ci/tasks.sh")
	if code != 0 || !strings.Contains(output, "\ntested\n") {
		t.Fatalf("exit code %d: %s", code, output)
	}
	const run = ".localecs/blog/"
	c.has("tasks.jsonl", run+"timeline.html", run+"timeline.json", run+"logs/blog/mysql.log", run+"logs/blog/wordpress.log", run+"logs/blog/metadata.json")
	if got := c.failures("tasks.jsonl"); len(got) > 0 {
		t.Errorf("failures %q", got)
	}
	c.write("ci/tests.sh", "exit 4\n")
	if code, output := c.job("ci/tasks.sh"); code != 4 {
		t.Errorf("tests that fail: exit code %d: %s", code, output)
	}
	// mysql has a health check, so the task cannot be healthy for a moment before it ends.
	c.standin("mysqld) ", `mysqld) echo "no such table"; exit 5; `)
	if code, output := c.job("ci/tasks.sh"); code != 1 || !strings.Contains(output, "no such table") {
		t.Errorf("a blog that ends: exit code %d: %s", code, output)
	}
	c.has(run+"logs/blog/mysql.log", run+"logs/blog/metadata.json", run+"timeline.html")
	if err := os.Remove(filepath.Join(c.dir, "taskdefs", "localecs.yaml")); err != nil {
		t.Fatal(err)
	}
	if code, output := c.job("ci/tasks.sh"); code != 1 || !strings.Contains(output, "-image 'mysql:8.0=PROGRAM,host'") {
		t.Errorf("a job without images: exit code %d: %s", code, output)
	}
}

// TestTestsOfAJobRunAsATask runs the second script of the page.
func TestTestsOfAJobRunAsATask(t *testing.T) {
	t.Parallel()
	c := newCheckout(t)
	code, output := c.job("ci/tests-as-task.sh")
	if code != 0 || !strings.Contains(output, "\n0\n") {
		t.Fatalf("exit code %d: %s", code, output)
	}
	const run = ".localecs/blog+blog-tests/"
	c.has(run+"logs/blog-tests/tests.log", run+"logs/blog-tests/metadata.json", run+"logs/blog/metadata.json")
	c.standin(`echo "1 test passed"`, `echo "1 test failed"; exit 4`)
	if code, output := c.job("ci/tests-as-task.sh"); code != 2 || !strings.Contains(output, "\n4\n") {
		t.Errorf("tests that fail: exit code %d: %s", code, output)
	}
	if got := strings.Join(c.failures("tasks.jsonl"), "\n"); got != "blog-tests/tests exited with 4" {
		t.Errorf("failures %q", got)
	}
}

// TestMeshJobOfTheManual is the part with the mesh.
func TestEndToEndMeshJobOfTheManual(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	testkit.RequireBinary(t, "consul")
	testkit.RequireBinary(t, "envoy")
	c := newCheckout(t)
	if code, output := c.job("ci/mesh.sh"); code != 0 {
		t.Fatalf("exit code %d: %s", code, output)
	}
	c.has("mesh.jsonl", ".localecs/hello-mesh/timeline.html", ".localecs/hello-mesh/logs/web/web.log", ".localecs/hello-mesh/logs/web/metadata.json")
	if got := c.failures("mesh.jsonl"); len(got) > 0 {
		t.Errorf("failures %q", got)
	}
}

// The jobs' files are YAML, and run the scripts that are tested here.
func TestJobFilesRunTheScripts(t *testing.T) {
	t.Parallel()
	for _, file := range []string{".github/workflows/tasks.yml", ".gitlab-ci.yml"} {
		text := shown(t, "yaml", file)
		var job map[string]any
		if err := yaml.Unmarshal([]byte(text), &job); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for _, want := range []string{"sh ci/tasks.sh\n", "sh ci/mesh.sh\n", ".localecs"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not have %q", file, want)
			}
		}
	}
}

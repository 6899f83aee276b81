package tftest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/terraform/internal/stub"
)

var mirrors = struct {
	sync.Mutex
	dir     string
	configs map[stub.AWS]string
}{configs: map[stub.AWS]string{}}

// Main runs a package's tests, or serves as a provider. A package that uses New calls it from
// TestMain and exits with its result.
func Main(m *testing.M) int {
	served, err := stub.ServeAsProvider()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if served {
		return 0
	}
	if mirrors.dir, err = os.MkdirTemp("", "tftest"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(mirrors.dir)
	return m.Run()
}

// configuration returns terraform's configuration with one release of the provider.
func configuration(t testing.TB, aws stub.AWS) string {
	t.Helper()
	mirrors.Lock()
	defer mirrors.Unlock()
	if mirrors.dir == "" {
		t.Fatal("call tftest.Main from TestMain")
	}
	if mirrors.configs[aws] == "" {
		config, err := stub.Install(filepath.Join(mirrors.dir, string(aws)), aws)
		if err != nil {
			t.Fatal(err)
		}
		mirrors.configs[aws] = config
	}
	return mirrors.configs[aws]
}

// Workspace is a copy of a module or an example, as root module.
type Workspace struct {
	t   testing.TB
	dir string
	env []string
}

// Require skips the test when there is no terraform, or fails it with CI=true.
func Require(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("terraform")
	if err != nil {
		testkit.Missing(t, "terraform not found on PATH; install Terraform 1.9 or newer")
	}
	return path
}

// New copies the modules, the examples and the data of tests, and runs init in one directory
// of the copy, such as "modules/controller".
func New(t testing.TB, module string, aws stub.AWS) *Workspace {
	t.Helper()
	Require(t)
	copied := t.TempDir()
	for _, tree := range []string{"modules", "examples", "testdata"} {
		from := filepath.Join(testkit.Root(), "terraform", tree)
		if _, err := os.Stat(from); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := os.CopyFS(filepath.Join(copied, tree), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	w := &Workspace{t: t, dir: filepath.Join(copied, filepath.FromSlash(module)), env: []string{
		"TF_CLI_CONFIG_FILE=" + configuration(t, aws), "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1", "TF_INPUT=0",
		"AWS_REGION=us-east-1", "HOME=" + copied,
		// A third of terraform's processor time is garbage collection and keys for TLS otherwise.
		"GOGC=off", "GOMEMLIMIT=512MiB", "TF_DISABLE_PLUGIN_TLS=1",
	}}
	w.must("init", "-no-color")
	return w
}

// SetRegion sets the region of the provider for all commands that follow; it is us-east-1
// before.
func (w *Workspace) SetRegion(region string) { w.env = append(w.env, "AWS_REGION="+region) }

// Dir returns the directory in which terraform runs.
func (w *Workspace) Dir() string { return w.dir }

// Run runs one command with NAME=value pairs added to its environment, and returns what it wrote to standard
// output and its exit code.
func (w *Workspace) Run(env []string, args ...string) (output string, code int) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "terraform", args...)
	cmd.Dir, cmd.Env = w.dir, append(append(os.Environ(), w.env...), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	return string(out) + stderr.String(), cmd.ProcessState.ExitCode()
}

// must runs a command that has to succeed.
func (w *Workspace) must(args ...string) string {
	w.t.Helper()
	out, code := w.Run(nil, args...)
	if code != 0 {
		w.t.Fatalf("terraform %s: exit code %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// Test runs the .tftest.hcl files of the module.
func (w *Workspace) Test() {
	w.t.Helper()
	w.must("test", "-no-color")
}

// Set writes the values of the module's variables for all commands that follow.
func (w *Workspace) Set(variables map[string]any) {
	w.t.Helper()
	text, err := json.Marshal(variables)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "terraform.tfvars.json"), text, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// Plan returns what a plan with these variables would create.
func (w *Workspace) Plan(variables map[string]any) *State {
	w.t.Helper()
	w.Set(variables)
	w.must("plan", "-no-color", "-out=tfplan")
	return w.show("planned_values", "tfplan")
}

// Apply applies with these variables and returns the state.
func (w *Workspace) Apply(variables map[string]any) *State {
	w.t.Helper()
	w.Set(variables)
	w.must("apply", "-no-color", "-auto-approve")
	return w.show("values")
}

// Unchanged fails the test when a plan with the current variables changes anything.
func (w *Workspace) Unchanged() {
	w.t.Helper()
	if out, code := w.Run(nil, "plan", "-no-color", "-detailed-exitcode"); code != 0 {
		w.t.Errorf("the second plan is not empty: exit code %d\n%s", code, out)
	}
}

// Destroy destroys everything.
func (w *Workspace) Destroy() {
	w.t.Helper()
	w.must("destroy", "-no-color", "-auto-approve")
}

// PlanErrors returns the errors of a plan that has to fail, as "summary: detail".
func (w *Workspace) PlanErrors(variables map[string]any) []string {
	w.t.Helper()
	w.Set(variables)
	out, code := w.Run(nil, "plan", "-json")
	if code == 0 {
		w.t.Errorf("the plan succeeds with %v", variables)
	}
	return diagnostics(out, "error")
}

// PlanWarnings returns the warnings of a plan that has to succeed, such as those of
// check blocks.
func (w *Workspace) PlanWarnings(variables map[string]any) []string {
	w.t.Helper()
	w.Set(variables)
	return diagnostics(w.must("plan", "-json"), "warning")
}

// diagnostics reads the messages of one severity from the output of a command with -json.
func diagnostics(output, severity string) (messages []string) {
	for line := range strings.Lines(output) {
		var event struct {
			Diagnostic struct{ Severity, Summary, Detail string } `json:"diagnostic"`
		}
		if json.Unmarshal([]byte(line), &event) == nil && event.Diagnostic.Severity == severity {
			messages = append(messages, event.Diagnostic.Summary+": "+event.Diagnostic.Detail)
		}
	}
	return messages
}

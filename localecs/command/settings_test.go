package command

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

const settingsScenario = `
name: settings
timeScale: 20
gatePeriod: 4s
environmentFiles: {"arn:aws:s3:::settings/b.env": b.env}
images:
  consul: {programs: {/bin/consul: "${consul}"}}
  tools: {programs: {/bin/helper: "${helper}", /hello: "${bin}/hello"}}
roles: {tools: {}}
consul: {image: consul, datacenter: dc1}
tasks:
  alone: task.json
  served: {definition: task.json, service: tools}
steps:
- start: [alone]
- await: {task: alone, stopped: true, stopCode: EssentialContainerExited, within: 60s}
- start: [served]
- await: {task: served, stopped: true, stopCode: EssentialContainerExited, within: 60s}
`

// b waits for a, which is healthy after one interval.
const settingsTask = `{
  "family": "tools", "networkMode": "awsvpc", "cpu": "256", "memory": "512",
  "taskRoleArn": "arn:aws:iam::123456789012:role/tools", "executionRoleArn": "arn:aws:iam::123456789012:role/tools",
  "containerDefinitions": [
    {"name": "a", "image": "tools", "command": ["/hello", "api", "127.0.0.1:9000"],
     "healthCheck": {"command": ["CMD", "/hello", "get", "http://127.0.0.1:9000/health"], "interval": 30, "retries": 1, "timeout": 60}},
    {"name": "b", "image": "tools", "dependsOn": [{"containerName": "a", "condition": "HEALTHY"}],
     "environmentFiles": [{"type": "s3", "value": "arn:aws:s3:::settings/b.env"}],
     "command": ["/bin/helper", "protect"]}
  ]
}`

// helper runs in container b: this test binary as /bin/helper. It reports a variable and asks for task protection.
func helper() int {
	request, err := http.NewRequest(http.MethodPut, os.Getenv("ECS_AGENT_URI")+"/task-protection/v1/state", strings.NewReader(`{"ProtectionEnabled": true}`))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	fmt.Printf("WORD is %s\n%s\n", os.Getenv("WORD"), body)
	return 0
}

func settingsPrograms(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return append(programs(t), "-var", "helper="+self)
}

// timeScale, gatePeriod, environmentFiles and a task's service reach the
// simulator, and a task that ends by itself can be awaited.
func TestSettingsOfAScenario(t *testing.T) {
	t.Parallel()
	programs := settingsPrograms(t)
	scene, state := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"scenario.yaml": settingsScenario, "task.json": settingsTask, "b.env": "WORD=hello\n"} {
		if err := os.WriteFile(filepath.Join(scene, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	code, report, events := runReport(t, append([]string{"-dir", state}, programs...), scene)
	if code != 0 || len(report.Failures) != 0 {
		t.Fatalf("exit %d, %q", code, report.Failures)
	}
	log := func(task string) string {
		text, err := os.ReadFile(filepath.Join(state, "settings", "logs", task, "b.log"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := log("served"); !strings.Contains(got, "WORD is hello\n") || !strings.Contains(got, `"ProtectionEnabled":true`) {
		t.Errorf("the task of a service said %q", got)
	}
	if got := log("alone"); !strings.Contains(got, "WORD is hello\n") || !strings.Contains(got, "TASK_NOT_VALID") {
		t.Errorf("the standalone task said %q", got)
	}
	var began, started time.Time
	for _, e := range events {
		switch {
		case e.Task == "alone" && e.Kind == "task":
			began = e.Time
		case e.Task == "alone" && e.Container == "b" && e.Text == "RUNNING":
			started = e.Time
		}
	}
	// a is healthy after 1.5 s. The gate opens 4 s after the task was made, which is reported a moment later.
	if waited := started.Sub(began); waited < 2500*time.Millisecond || waited > 25*time.Second {
		t.Errorf("b started after %s; want the gate's 4s, and not the interval's 30s", waited)
	}
}

// What a flag of run says about tasks, a file can say, too. Other flags are about one run or this machine.
func TestFlagsOfRunHaveKeys(t *testing.T) {
	t.Parallel()
	keys := map[string]string{
		"image": "images.programs", "entrypoint": "images.entrypoint", "cmd": "images.cmd", "secret": "secrets",
		"environment-file": "environmentFiles", "publish": "publish", "outside": "outside", "seed": "seed",
		"stop-order": "stopOrder",
	}
	without := map[string]string{
		"dir": "where logs are", "json": "form of output", "log-level": "form of output", "check": "starts nothing",
		"network": "what this machine can do", "runtime": "what this machine can do",
		"var": "where this machine has the programs of the file", "images": "names the file",
		"chaos": "takes the place of the steps", "for": "of -chaos", "runs": "of -chaos", "shrink": "of -chaos",
	}
	fs := flag.NewFlagSet("run", flag.ContinueOnError)
	runCommand().Flags(fs)
	fs.VisitAll(func(f *flag.Flag) {
		key, ok := keys[f.Name]
		if !ok && without[f.Name] == "" {
			t.Errorf("-%s has no key in a scenario file, and no reason", f.Name)
		}
		of := reflect.TypeFor[file.Scenario]()
		for name := range strings.SplitSeq(key, ".") {
			if of.Kind() == reflect.Map {
				of = of.Elem().Elem()
			}
			if ok {
				of = fieldWithKey(t, of, name)
			}
		}
		delete(keys, f.Name)
		delete(without, f.Name)
	})
	if len(keys)+len(without) > 0 {
		t.Errorf("run has no flags %v %v", keys, without)
	}
}

// fieldWithKey returns the type of the field with a key.
func fieldWithKey(t *testing.T, of reflect.Type, key string) reflect.Type {
	t.Helper()
	for f := range of.Fields() {
		if f.Tag.Get("yaml") == key {
			return f.Type
		}
	}
	t.Fatalf("%s has no key %s", of, key)
	return nil
}

func TestSecretsOfFlagsMayBeInFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	set := secretFlag(got)
	for _, text := range []string{"/a=x", "/b=@" + path} {
		if err := set(text); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(map[string]string{"/a": "x", "/b": "from a file"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	testkit.ErrorContains(t, set("/c=@"+path+"x"), "no such file or directory")
}

func TestServeNamesKeysWithoutEffect(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"timeScale: 2\nenvironmentFiles: {}\n": 0, "publish: ['80:web:80']\n": 1, "outside: ['db:5432']\n": 1,
		"api: {throttle: true}\n": 1,
	} {
		path := filepath.Join(t.TempDir(), "x.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		setting, err := file.LoadSetting(path)
		if err != nil {
			t.Fatal(err)
		}
		testkit.Equal(t, text, len(withoutEffect(setting)), want)
	}
}

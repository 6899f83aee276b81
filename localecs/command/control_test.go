package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// variant returns hello-mesh without a controller and with other steps, in a directory
// for itself. change gets each file's text by its name.
func variant(t testing.TB, steps string, change func(name, text string) string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"scenario.yaml", "web.json", "api.json"} {
		from := "hello-mesh"
		if name == "scenario.yaml" {
			from = "chaos" // the scenario makes what tasks log in by
		}
		data, err := os.ReadFile(filepath.Join(testkit.Root(), "examples", from, name))
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		if name == "scenario.yaml" {
			text = strings.NewReplacer("../hello-mesh/", "", "name: chaos", "name: hello-mesh").Replace(text)
			before, _, _ := strings.Cut(text, "\nsteps:")
			_, checks, _ := strings.Cut(text, "\nchecks:")
			text = before + "\nsteps:\n" + steps + "\nchecks:" + checks
		}
		changed := change(name, text)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(changed), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// without cuts what matches out of a text; it must be there.
func without(t *testing.T, text, pattern string) string {
	t.Helper()
	cut := regexp.MustCompile(pattern).ReplaceAllString(text, "")
	if cut == text {
		t.Fatalf("%s is not in\n%s", pattern, text)
	}
	return cut
}

// The demo's checks are worth something only if they can fail.
func TestEndToEndChecksCanFail(t *testing.T) {
	t.Parallel()
	const up = `
- start: [web, api-1]
- await: {service: api, passing: 1, within: 60s}
- await: {service: web, passing: 1, within: 60s}
- traffic: {task: web, port: 8080, rate: 20}
`
	tests := map[string]struct {
		steps  string
		change func(t *testing.T, name, text string) string
		says   []string
	}{
		"no intention": {up, func(t *testing.T, name, text string) string {
			if name == "scenario.yaml" {
				return without(t, text, `  configEntries:\n(    .*\n)+`)
			}
			return text
		}, []string{"step 4: traffic: no answer from http://10.42.0.4:8080/ within 10s: 502"}},
		"role tag of another service": {up, func(t *testing.T, name, text string) string {
			return strings.Replace(text, "consul.hashicorp.com.service-name: api", "consul.hashicorp.com.service-name: other", 1)
		}, []string{"step 2: await 1 passing instances of api", "task api-1 stopped unexpectedly: EssentialContainerExited", " exited with ", "register service", "lacks permission"}},
		"no logout": {`
- start: [api-1]
- await: {service: api, passing: 1, within: 60s}
- kill: {task: api-1, container: consul-client, process: consul}
- await: {task: api-1, stopped: true, within: 40s}
`, func(t *testing.T, name, text string) string {
			if name == "api.json" {
				return withoutHealthSync(t, text)
			}
			return text
		}, []string{"step 4: await task api-1 to stop by itself within 40s: still in Consul after ", "of iam-ecs-service-token"}},
		"an agent that does not leave": {`
- start: [api-1]
- await: {service: api, passing: 1, within: 60s}
- kill: {task: api-1, container: consul-client, process: consul}
- await: {task: api-1, stopped: true, within: 100s}
`, func(t *testing.T, name, text string) string { return text },
			[]string{"step 4: await task api-1 to stop by itself within 1m40s: still in Consul after ", "agent ip-10-42-0-4.ec2.internal, which is failed"}},
	}
	programs := programs(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if name == "an agent that does not leave" { // which gossip finds after a minute
				testkit.Long(t)
			}
			t.Parallel()
			scene := variant(t, tt.steps, func(file, text string) string { return tt.change(t, file, text) })
			args := append([]string{"run", "-json", "-dir", t.TempDir()}, programs...)
			got := call(t, append(args, scene)...)
			if got.code != 2 {
				t.Errorf("exit %d, want 2\n%s\n%s", got.code, got.stdout, got.stderr)
			}
			lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
			var report struct{ Failures []string }
			if err := json.Unmarshal([]byte(lines[len(lines)-1]), &report); err != nil || len(report.Failures) != 1 {
				t.Fatalf("%v, failures %q, want one", err, report.Failures)
			}
			for _, want := range tt.says {
				if !strings.Contains(report.Failures[0], want) {
					t.Errorf("%q does not say %q", report.Failures[0], want)
				}
			}
		})
	}
}

// withoutHealthSync takes health-sync out of a task definition, and with it the
// checks that only it would turn to passing.
func withoutHealthSync(t *testing.T, text string) string {
	t.Helper()
	text = without(t, text, `\\"healthSyncContainers\\":\[[^\]]*\],`)
	var def map[string]any
	if err := json.Unmarshal([]byte(text), &def); err != nil {
		t.Fatal(err)
	}
	var kept []any
	for _, c := range def["containerDefinitions"].([]any) {
		if c.(map[string]any)["name"] != "consul-ecs-health-sync" {
			kept = append(kept, c)
		}
	}
	def["containerDefinitions"] = kept
	data, err := json.Marshal(def)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

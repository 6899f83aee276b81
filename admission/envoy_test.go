package admission

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/taskdef"
)

// Examples and docs start Envoy as admission does, and so do the Terraform modules, see
// terraform/internal/parity.
func TestEnvoysCommandLineIsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	want := envoyCommand("/consul", "", defaultConcurrency)
	found := 0
	for _, pattern := range []string{"../examples/*/*.json", "../examples/*/*/*.json", "../docs/*.md", "../README.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, got := range envoyCommands(t, string(text)) {
				found++
				if !slices.Equal(got, want) {
					t.Errorf("%s has %q, want %q", file, got, want)
				}
			}
		}
	}
	if found < 15 {
		t.Errorf("%d command lines, want those of 12 examples, of MIGRATION.md and of TRAFFIC.md", found)
	}
}

// envoyCommands returns the command lines in JSON of a text, also of a diff in it, that begin
// with envoy and its bootstrap.
func envoyCommands(t *testing.T, text string) [][]string {
	t.Helper()
	text = regexp.MustCompile(`\n\s*\+`).ReplaceAllString(text, "\n")
	var commands [][]string
	for _, list := range regexp.MustCompile(`\[\s*"envoy",[^\]]*\]`).FindAllString(text, -1) {
		var words []string
		if err := json.Unmarshal([]byte(list), &words); err != nil {
			t.Fatalf("%s: %v", list, err)
		}
		if strings.Contains(list, "envoy-bootstrap.json") {
			commands = append(commands, words)
		}
	}
	return commands
}

func TestConcurrencyAndLogLevelOfEnvoy(t *testing.T) {
	t.Parallel()
	const direct, dataplane = `"proxy": {"mode": "direct"}`, `"proxy": {}`
	for _, tt := range []struct{ name, mode, mesh, labels, want string }{
		{
			"defaults", direct, "", "",
			"--log-level warning --disable-hot-restart --concurrency 2 --drain-time-s 30 --drain-strategy immediate",
		},
		{"mesh file", direct, `, "admission": {"envoyConcurrency": 4}`, "", "--concurrency 4 "},
		{
			"annotation", direct, `, "admission": {"envoyConcurrency": 4}`,
			`"consul.hashicorp.com/envoy-concurrency": "1"`, "--concurrency 1 ",
		},
		{"level of the configuration", direct, `, "logLevel": "DEBUG"`, "", "--log-level debug "},
		{"warnings", direct, `, "logLevel": "WARN"`, "", "--log-level warning "},
		{"dataplane", dataplane, "", "", "consul-dataplane -config-file /consul/consul-dataplane.json"},
		{
			"dataplane with threads", dataplane, `, "admission": {"envoyConcurrency": 4}`, "",
			"consul-dataplane.json -envoy-concurrency 4",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			mesh := parseMesh(t, []byte(`{"consulServers": {"hosts": "consul.example.com"}, `+tt.mode+tt.mesh+`}`))
			r, err := Admit([]byte(`{"family": "web", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"],
				"cpu": "512", "memory": "1024",
				"containerDefinitions": [{"name": "web", "image": "web:1", "entryPoint": ["/web"], "dockerLabels": {`+
				tt.labels+`}}]}`), Options{Mesh: mesh})
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(r.After.Definition.ContainerDefinitions,
				func(c taskdef.Container) bool { return c.User == proxyUser })
			if got := strings.Join(r.After.Definition.ContainerDefinitions[i].Command, " "); !strings.Contains(got,
				tt.want) {
				t.Errorf("command is %q, want %q in it", got, tt.want)
			}
		})
	}
}

func TestConcurrencyIsANumberOfThreads(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"0":    "the member admission.envoyConcurrency of the mesh file: is 0, want 1 to 1024",
		"1025": "is 1025, want 1 to 1024", "-1": "is -1", `"2"`: "must be an integer",
	} {
		_, err := ParseMesh([]byte(`{"admission": {"envoyConcurrency": ` + value + `}}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("envoyConcurrency %s: error %v, want %q", value, err, want)
		}
	}
}

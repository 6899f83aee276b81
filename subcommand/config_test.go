package subcommand

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/cli"
)

// callConfig runs "consul-ecs config ..." with that configuration.
func callConfig(doc, stdin string, words ...string) (code int, stdout, stderr string) {
	return callConfigIn(map[string]string{"CONSUL_ECS_CONFIG_JSON": doc}, stdin, words...)
}

// callConfigIn runs "consul-ecs config ..." as a process would.
func callConfigIn(env map[string]string, stdin string, words ...string) (code int, stdout, stderr string) {
	app := cli.App{Name: "consul-ecs", Commands: map[string]cli.Command{"config": configCommand()}}
	getenv := func(name string) string { return env[name] }
	var out, errs bytes.Buffer
	code = cli.Main(app, append([]string{"config"}, words...), getenv, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, []byte(`{"bootstrapDir":"/file","gateway":{"kind":"mesh-gateway"}}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	const good = `{"bootstrapDir":"/consul"}`
	tests := []struct {
		name, env, stdin string
		words            []string
		code             int
		stdout, stderr   string
	}{
		{"valid in the environment", good, ``, []string{"validate"}, 0, "valid (agent)\n", ""},
		{"valid in a file", ``, ``, []string{"validate", "-file", file}, 0, "valid (agent)\n", ""},
		{"valid on standard input", ``, good, []string{"validate", "-file=-"}, 0, "valid (agent)\n", ""},
		{"warnings", `{"bootstrapDir":"/consul","service":{"port":1,"Name":"x"},"consulLogin":{"region":"r"}}`, ``,
			[]string{"validate"}, 0,
			"warning $.consulLogin.region: no effect while consulLogin.enabled is not true\nwarning $.service.Name: " +
				"unknown field, ignored; did you mean \"name\"?\nvalid (agent)\n", ""},
		{"violations", `{"logLevel":"info","service":{"port":"80"}}`, ``, []string{"validate"}, 1,
			"violation $.bootstrapDir: is required; must be a string that is not empty\n" +
				"violation $.logLevel: must be one of TRACE, DEBUG, INFO, WARN, ERROR, not \"info\"\n" +
				"violation $.service.port: must be an integer from 0 to 65535, not a string\nnot valid (agent)\n", ""},
		{"misspelt name of a required field", `{"bootstrapDir":"/consul","service":{"ports":80}}`, ``,
			[]string{"validate"}, 1,
			"violation $.service.port: is required; must be an integer from 0 to 65535\n" +
				"warning $.service.ports: unknown field, ignored; did you mean \"port\"?\nnot valid (agent)\n", ""},
		{"violations as JSON", `{"bootstrapDir":"<>"} x`, ``, []string{"validate", "-json"}, 1,
			"{\n  \"valid\": false,\n  \"violations\": [\n    {\n      \"path\": \"$\",\n      \"message\": \"line 1, " +
				"column 23: only one JSON object is allowed: invalid character 'x' after top-level value\"\n    }\n  " +
				"],\n  \"warnings\": []\n}\n", ""},
		{"valid as JSON", good, ``, []string{"validate", "-json"}, 0,
			"{\n  \"valid\": true,\n  \"generation\": \"agent\",\n  \"violations\": [],\n  \"warnings\": []\n}\n", ""},
		{"unset", ``, ``, []string{"validate"}, 1,
			"violation $: CONSUL_ECS_CONFIG_JSON is unset or empty: want a JSON object with at least " +
				"bootstrapDir\nnot valid\n", ""},
		{"empty input", good, " \n", []string{"validate", "-file", "-"}, 1, "",
			"consul-ecs config: read configuration: \"-\" is empty\n"},
		{"no such file", good, ``, []string{"validate", "-file", "/nonexistent/config.json"}, 1, "",
			"consul-ecs config: read configuration: open /nonexistent/config.json: no such file or directory\n"},
		{"stray word", good, ``, []string{"validate", "config.json"}, 1, "",
			"consul-ecs config: unexpected argument \"config.json\"\n"},
		{"unknown flag", good, ``, []string{"validate", "-x"}, 1, "",
			"consul-ecs config: flag provided but not defined: -x\nconsul-ecs config --help lists the flags\n"},
		{"unknown word", good, ``, []string{"check"}, 1, "",
			"consul-ecs config: unknown subcommand \"check\": want schema or validate\n"},
		{"flag of the other subcommand", good, ``, []string{"schema", "-json"}, 1, "",
			"consul-ecs config: schema takes no flags\n"},
		{"no word", good, ``, nil, 1, "", "consul-ecs config: want config schema or config validate\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := callConfig(tt.env, tt.stdin, tt.words...)
			if code != tt.code {
				t.Errorf("exit code: got %d, want %d", code, tt.code)
			}
			if diff := cmp.Diff(tt.stdout, stdout); diff != "" {
				t.Errorf("stdout -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tt.stderr, stderr); diff != "" {
				t.Errorf("stderr -want +got:\n%s", diff)
			}
		})
	}
}

func TestConfigValidateReportsTheGeneration(t *testing.T) {
	t.Parallel()
	const agent, agentless = `{"bootstrapDir":"/consul"}`,
		`{"bootstrapDir":"/consul","consulServers":{"hosts":"h"},"service":{"port":1}}`
	tests := map[string]struct {
		doc, generation string
		code            int
		stdout, stderr  string
	}{
		"agentless": {agentless, "", 0, "valid (agentless)\n", ""},
		"stated":    {agentless, "agentless", 0, "valid (agentless)\n", ""},
		"without servers": {`{"bootstrapDir":"/consul","controller":{}}`, "", 1,
			"violation $.consulServers: is required; must be an object\nnot valid (agentless)\n", ""},
		"stated otherwise": {agent, "agentless", 1,
			"violation $: is agent by its fields, but CONSUL_ECS_GENERATION is agentless; change one of the " +
				"two\nviolation $.consulServers: is required; must be an object\nnot valid (agentless)\n", ""},
		"stated wrongly": {agent, "0.10", 1, "",
			"consul-ecs config: CONSUL_ECS_GENERATION is \"0.10\": want agent or agentless, or leave it unset: the " +
				"document has consulServers or not\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := callConfigIn(map[string]string{"CONSUL_ECS_CONFIG_JSON": tt.doc,
				"CONSUL_ECS_GENERATION": tt.generation}, ``, "validate")
			if code != tt.code || stdout != tt.stdout || stderr != tt.stderr {
				t.Errorf("got %d, %q, %q\nwant %d, %q, %q", code, stdout, stderr, tt.code, tt.stdout, tt.stderr)
			}
		})
	}
}

func TestConfigSchema(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := callConfig(``, ``, "schema")
	if code != 0 || stdout != string(config.Schema()) || !json.Valid([]byte(stdout)) || stderr != "" {
		t.Errorf("got %d, %d bytes, %q", code, len(stdout), stderr)
	}
}

func TestConfigHelp(t *testing.T) {
	t.Parallel()
	for _, words := range [][]string{{"--help"}, {"validate", "--help"}, {"schema", "-h"}} {
		code, stdout, stderr := callConfig(``, ``, words...)
		if code != 0 || stderr != "" {
			t.Errorf("%v: got %d, %q", words, code, stderr)
		}
		for _, want := range []string{"Usage: consul-ecs config schema | config validate [-file FILE] [-json]\n\n",
			"-file FILE", "CONSUL_ECS_CONFIG_JSON", "Example:\n"} {
			if !strings.Contains(stdout, want) {
				t.Errorf("%v: no %q in\n%s", words, want, stdout)
			}
		}
	}
}

// The help promises this very output.
func TestConfigHelpExampleIsTrue(t *testing.T) {
	t.Parallel()
	_, stdout, _ := callConfig(``, `{"bootstrapDir": "/consul", "service": {"port": "80"}}`, "validate", "-file", "-")
	for line := range strings.Lines(stdout) {
		if !strings.Contains(configHelp+"\n", "  "+line) {
			t.Errorf("not in the help: %s", line)
		}
	}
}

// A mesh file is for admit, whatever else is in it.
func TestConfigValidateNamesAdmitForAMeshFile(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := callConfig("", `{"consulServers": {"hosts": "10.0.0.4"}, "admission": {}}`, "validate",
		"-file", "-")
	if code != 1 || stdout != "" {
		t.Errorf("exit %d, output %q", code, stdout)
	}
	if want := "this is a mesh file, as it has the member admission: consul-ecs admit -config checks it with a task " +
		"definition"; !strings.Contains(stderr, want) {
		t.Errorf("stderr %q, want %q", stderr, want)
	}
}

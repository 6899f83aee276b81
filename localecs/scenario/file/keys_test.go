package file

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseNamesThePlaceOfEveryMistake(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ document, want string }{
		"unknown keys": {
			"name: x\nimages: {i: {program: {}}}\ntasks: &t {a: b}\nsteps:\n- awiat: {servce: x}\n- await: {servce: " +
				"x}\nchecks:\n  failed: 0\n<<: *t\n",
			"line 2, column 14: unknown key \"program\"; did you mean \"programs\"?\n" +
				"line 5, column 3: unknown key \"awiat\"; did you mean \"await\"?\n" +
				"line 6, column 11: unknown key \"servce\"; did you mean \"service\"?\n" +
				"line 8, column 3: unknown key \"failed\"; known here: agentsLeft, cleanExits, failedRequests, " +
				"faultsMayMiss, minRequests, noServices, noTokensOf",
		},
		"config entries are Consul's": {"consul: {configEntries: [{Any: {thing: 1}}]}\nx: 1\n",
			`line 2, column 1: unknown key "x"; known here: account, api, checks, cloudMap, cluster, consul, ` +
				`environmentFiles, faults, gatePeriod, guardDuty, healthyAfter, images, name, outside, publish, ` +
				`region, roles, secrets, seed, serviceConnect, services, steps, stopOrder, subnet, tasks, timeScale`},
		"tab": {"name: x\n\ttasks: {}\n",
			"[2:1] found character '\t' that cannot start any token\n   1 | name: x\n>  2 | \ttasks: {}\n       " +
				"^\nYAML is indented with spaces, not with tabs"},
		"cut off": {"name: [x", "[1:7] sequence end token ']' not found\n>  1 | name: [x\n             ^"},
		"twice": {"name: x\nname: y\n",
			"[2:1] mapping key \"name\" already defined at [1:1]\n   1 | name: x\n>  2 | name: y\n       ^"},
		"forms of a step": {
			"tasks: {a: {definiton: x}}\nsteps:\n- stop: {task: [web]}\n- endTraffic: {maxfailed: 3}\n- kill: {task: " +
				"web, contaner: a}\n",
			"line 1, column 13: unknown key \"definiton\"; did you mean \"definition\"?\n" +
				"line 3, column 10: unknown key \"task\"; did you mean \"tasks\"?\n" +
				"line 4, column 16: unknown key \"maxfailed\"; did you mean \"maxFailed\"?\n" +
				"line 5, column 21: unknown key \"contaner\"; did you mean \"container\"?",
		},
		"no form of a step": {"steps:\n- stop: web\n", "line 2, column 9: want a mapping, got a string"},
		"wrong type":        {"name: [1]\n", "line 1, column 7: want a string, got a list"},
		"no duration": {"steps:\n- await: {within: soon}\n- await: {within: 60}\n- await: {within: 60s}\n",
			"line 2, column 19: want a duration such as 60s, got soon\nline 3, column 19: want a duration such as " +
				"60s, got 60"},
		"empty":         {"", "line 1, column 1: the file is empty"},
		"comments":      {"# only\n", "it contains only comments"},
		"two documents": {"name: x\n---\nname: y\n", "line 3: a second document begins here: want one"},
		"a task definition": {`{"family": "web", "containerDefinitions": []}`,
			"this is a task definition, not a scenario: localecs run takes it as an argument, from a file, not from " +
				"a pipe"},
		"a described one": {`{"taskDefinition": {}}`,
			"this is a task definition, not a scenario: localecs run takes it as an argument, from a file, not from " +
				"a pipe"},
		"one as YAML": {"family: web\ncontainerDefinitions: []\n",
			"this is a task definition, which ECS takes as JSON: `yq -o=json` converts it, and localecs run takes " +
				"that as it is"},
		"Windows's encoding": {"name: caf\xe9\n", "line 1, column 10: byte 0xe9 is not UTF-8: save the file as UTF-8"},
	} {
		got := ""
		if _, err := parseScenario([]byte(c.document)); err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "x.yaml")
	if err := os.WriteFile(file, []byte("nam: x\nstep: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir:           "there is no scenario.yaml in " + dir,
		dir + "/none": "read scenario: " + dir + "/none: no such file or directory",
		file: "scenario " + file +
			": line 1, column 1: unknown key \"nam\"; did you mean \"name\"?\nscenario " + file +
			": line 2, column 1: unknown key \"step\"; did you mean \"steps\"?",
		"/dev/zero":      "read scenario: /dev/zero is larger than 1024 KiB: is it the right file?",
		file + "/x.yaml": "read scenario: " + file + "/x.yaml: not a directory",
	} {
		got := ""
		if _, err := Load(path); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", path, got, want)
		}
	}
}

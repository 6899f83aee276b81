package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// given are files below a directory; DIR in their texts is that directory.
type given map[string]string

func (g given) write(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range g {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// scene returns a scenario of one task, from definition.json, and an image without programs, with further lines.
func scene(lines string) string {
	return "name: s\nimages: {i: {}}\nconsul: {image: i}\ntasks: {web: definition.json}\n" + lines
}

const goodDefinition = `{"family": "f", "networkMode": "awsvpc", "containerDefinitions": [{"name": "a", "image": "i", "memory": 64, "command": ["x"]}]}`

// Whatever is wrong with what was given: it is said completely, nothing is
// started, and the state directory is not even made.
func TestBadInputIsRefusedCompletely(t *testing.T) {
	t.Parallel()
	const asYAML = "this looks like YAML, but ECS takes JSON; `yq -o=json` converts it"
	for name, tt := range map[string]struct {
		args  []string
		files given
		want  string // of standard error, after "localecs run: "
	}{
		"no argument":     {nil, nil, "want task definitions, or a scenario directory or file"},
		"two arguments":   {[]string{"DIR", "DIR/none"}, nil, "there is no scenario.yaml in DIR\nread scenario: DIR/none: no such file or directory"},
		"no such file":    {[]string{"DIR/none"}, nil, "read scenario: DIR/none: no such file or directory"},
		"empty directory": {[]string{"DIR"}, nil, "there is no scenario.yaml in DIR"},
		"empty scenario":  {[]string{"DIR/x"}, given{"x": ""}, "scenario DIR/x: line 1, column 1: the file is empty"},
		"not YAML": {[]string{"DIR/x"}, given{"x": "name: ["}, "scenario DIR/x: [1:7] sequence end token ']' not found\n" +
			">  1 | name: [\n             ^"},
		"tabs": {[]string{"DIR/x"}, given{"x": "name: x\n\ttasks: {}\n"}, "scenario DIR/x: [2:1] found character '\t' that cannot start any token\n" +
			"   1 | name: x\n>  2 | \ttasks: {}\n       ^\nYAML is indented with spaces, not with tabs"},
		"unknown keys": {[]string{"DIR/x"}, given{"x": "name: x\ntask: {}\nsteps:\n- strat: [a]\n"}, `scenario DIR/x: line 2, column 1: unknown key "task"; did you mean "tasks"?
scenario DIR/x: line 4, column 3: unknown key "strat"; did you mean "start"?`},
		"several mistakes": {[]string{"DIR/x"}, given{"x": "stopOrder: never\nsteps:\n- start: [web]\n- await: {requests: 3}\n"}, `scenario DIR/x: name: must not be empty
scenario DIR/x: stopOrder: "never": want reverse or at-once
scenario DIR/x: tasks: at least one task definition is needed
scenario DIR/x: consul: every scenario has a Consul server: want its image, one of images. Without one, task definitions run by themselves: localecs run FILE.json
scenario DIR/x: steps[0]: start: task "web" is not in tasks
scenario DIR/x: steps[1]: await: there is no traffic by then
scenario DIR/x: steps[1]: await: within: want a duration such as 60s: every wait has an end`},
		"a definition without its image": {[]string{"DIR/x"}, given{"x": goodDefinition}, `this is missing; add these flags, or the same in localecs.yaml beside the definition:
  -image 'i=host'
      programs for a
PROGRAM is a name on PATH or a path of this machine, host is all that it has installed; -image '*=host' is for all images`},
		"definitions for a scenario":  {[]string{"DIR"}, given{"x.json": goodDefinition}, "there is no scenario.yaml in DIR; its task definitions run with: localecs run DIR/x.json"},
		"a definition and a scenario": {[]string{"DIR/x", "DIR"}, given{"x": goodDefinition, "scenario.yaml": scene("")}, "DIR/x is a task definition and other arguments are not: run scenarios separately"},
		"missing definition":          {[]string{"DIR"}, given{"scenario.yaml": scene("")}, "read task definition: DIR/definition.json: no such file or directory"},
		"cut definition": {[]string{"DIR"}, given{"scenario.yaml": scene(""), "definition.json": goodDefinition[:40]},
			"task definition DIR/definition.json: line 1, column 41: unexpected end of JSON input: something is cut off, or a bracket is not closed"},
		"definition in YAML": {[]string{"DIR"}, given{"scenario.yaml": scene(""), "definition.json": "family: web\n"}, "task definition DIR/definition.json: line 1, column 3: " + asYAML},
		"definition of another encoding": {[]string{"DIR"}, given{"scenario.yaml": scene(""), "definition.json": "\xff\xfe{\x00}\x00"},
			"task definition DIR/definition.json: line 1, column 1: the file is UTF-16: save it as UTF-8"},
		"huge definition": {[]string{"DIR"}, given{"scenario.yaml": scene(""), "definition.json": strings.Repeat(" ", 1<<20) + goodDefinition},
			"read task definition: DIR/definition.json is larger than 1024 KiB: is it the right file?"},
		"directory for a definition": {[]string{"DIR"}, given{"scenario.yaml": scene(""), "definition.json/x": ""},
			"read task definition: DIR/definition.json is a directory: want a file"},
		"wrong types": {[]string{"DIR"}, given{"scenario.yaml": scene(""), "definition.json": `{"family": "f", "cpu": 256, "containerDefinitions": [{"name": "a", "essential": "yes"}]}`},
			`task definition DIR/definition.json: invalid task definition:
  $.containerDefinitions[0].essential: must be true or false, but is the string "yes" (type)
  $.cpu: must be a string, but is the number 256 (type)`},
		"rules of ECS, and a typing error": {[]string{"DIR"}, given{"scenario.yaml": scene(""), "definition.json": `{
			  "family": "f", "family": "my web", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "256", "memory": "4096",
			  "containerDefinitions": [
			    {"name": "a", "image": "i", "stopTimeout": 121, "enviroment": [],
			     "dependsOn": [{"containerName": "b", "condition": "SUCCESS"}, {"containerName": "c", "condition": "START"}]},
			    {"name": "b", "image": "i", "portMappings": [{"containerPort": 80, "hostPort": 8080}]}]}`},
			`warning: DIR/definition.json: $.family: key given twice, the last one counts
localecs run: warning: DIR/definition.json: $.containerDefinitions[0].enviroment: unknown key; did you mean "environment"?
localecs run: task definition DIR/definition.json: Family contains invalid characters. ($.family: use letters, digits, '_' and '-'; family-characters)
task definition DIR/definition.json: Cannot depend on container + 'c' because it does not exist ($.containerDefinitions[0].dependsOn[1].containerName: name a container of the task; depends-on-exists)
task definition DIR/definition.json: A dependency container with SUCCESS or COMPLETE condition cannot be an essential container ($.containerDefinitions[0].dependsOn[0]: set essential to false in 'b', or take START or HEALTHY; depends-on-essential)
task definition DIR/definition.json: When networkMode=awsvpc, the host ports and container ports in port mappings must match. ($.containerDefinitions[1].portMappings[0].hostPort: remove hostPort; port-match)
task definition DIR/definition.json: No Fargate configuration exists for given values: 256 CPU, 4096 memory. See the Amazon ECS documentation for the valid values. ($.memory: the next valid size is cpu 512 with memory 4096; fargate-size)
task definition DIR/definition.json: Tasks using the Fargate launch type must have a container stop timeout of less than 120 seconds. ($.containerDefinitions[0].stopTimeout: take 2 to 120 seconds; fargate-timeout)`},
		"role that the scenario does not have": {[]string{"DIR"}, given{"scenario.yaml": scene(""), "definition.json": strings.Replace(goodDefinition, `{`, `{"taskRoleArn": "arn:aws:iam::123456789012:role/none", `, 1)},
			"task definition DIR/definition.json: taskRoleArn arn:aws:iam::123456789012:role/none is not among the scenario's roles: add roles: {none: {}}, and its account"},
		"programs": {[]string{"-var", "mine=DIR/none", "DIR/x"}, given{"definition.json": goodDefinition, "data": "", "sub/x": "", "x": `name: s
consul: {image: i}
tasks: {web: definition.json}
images:
  i:
    programs: {/bin/a: "${nosuch}/x", /bin/b: none, /bin/c: data, /bin/d: sub, /bin/e: "${mine}"}
`}, `images["i"].programs["/bin/a"]: needs ${nosuch}, which was not found: give -var nosuch=PATH
images["i"].programs["/bin/b"]: DIR/none: no such file or directory
images["i"].programs["/bin/c"]: DIR/data is not executable: chmod +x makes it so
images["i"].programs["/bin/d"]: DIR/sub is a directory, not a program
images["i"].programs["/bin/e"]: DIR/none: no such file or directory (from ${mine}): give -var mine=PATH`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, state := tt.files.write(t), filepath.Join(t.TempDir(), "state")
			args := []string{"run", "-dir", state}
			for _, a := range tt.args {
				args = append(args, strings.ReplaceAll(a, "DIR", dir))
			}
			got := call(t, args...)
			if got.code != 1 || got.stdout != "" {
				t.Errorf("exit %d, want 1; standard output %q", got.code, got.stdout)
			}
			if diff := cmp.Diff("localecs run: "+tt.want+"\n", strings.ReplaceAll(got.stderr, dir, "DIR")); diff != "" {
				t.Errorf("standard error (-want +got):\n%s", diff)
			}
			if _, err := os.Stat(state); !os.IsNotExist(err) {
				t.Errorf("the state directory was made: %v", err)
			}
		})
	}
}

// Programs get errors in the form of everything else.
func TestBadInputForPrograms(t *testing.T) {
	t.Parallel()
	dir := given{"x": "name: x\ntask: {}\n"}.write(t)
	got := call(t, "run", "-json", filepath.Join(dir, "x"))
	var line struct {
		Level    string `json:"@level"`
		Error    string
		ExitCode int `json:"exit_code"`
	}
	if err := json.Unmarshal([]byte(got.stderr), &line); err != nil {
		t.Fatalf("%v: %+v", err, got)
	}
	if want := (result{code: 1, stderr: got.stderr}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if want := `unknown key "task"; did you mean "tasks"?`; !strings.Contains(line.Error, want) {
		t.Errorf("error: got %q, want %q in it", line.Error, want)
	}
	if line.Level != "error" {
		t.Errorf("level: got %q, want error", line.Level)
	}
	if line.ExitCode != 1 {
		t.Errorf("exit_code: got %d, want 1", line.ExitCode)
	}
}

func TestBadFlagsAndDirectoriesAreRefused(t *testing.T) {
	t.Parallel()
	files := given{"scenario.yaml": scene(""), "definition.json": goodDefinition, "state/s/thesis": ""}
	for name, tt := range map[string]struct {
		args []string
		want string // beginning of standard error
	}{
		"flag":              {[]string{"-nosuch", "DIR"}, "localecs run: flag provided but not defined: -nosuch\n"},
		"variable":          {[]string{"-var", "x", "DIR"}, `localecs run: invalid value "x" for flag -var: want NAME=VALUE, got "x"` + "\n"},
		"log level":         {[]string{"-log-level", "loud", "DIR"}, `localecs run: log level "loud": want TRACE, DEBUG, INFO, WARN or ERROR` + "\n"},
		"foreign directory": {[]string{"-dir", "DIR/state", "DIR"}, `localecs run: -dir: DIR/state/s contains "thesis", which is not of a run: name another directory` + "\n"},
		"file":              {[]string{"-dir", "DIR/definition.json", "DIR"}, "localecs run: -dir: mkdir DIR/definition.json: not a directory\n"},
	} {
		dir := files.write(t)
		args := []string{"run"}
		for _, a := range tt.args {
			args = append(args, strings.ReplaceAll(a, "DIR", dir))
		}
		got := call(t, args...)
		if stderr := strings.ReplaceAll(got.stderr, dir, "DIR"); got.code != 1 || !strings.HasPrefix(stderr, tt.want) {
			t.Errorf("%s: exit %d, standard error\n%s\nwant 1 and\n%s", name, got.code, stderr, tt.want)
		}
		if _, err := os.Stat(filepath.Join(dir, "state", "s", "thesis")); err != nil {
			t.Errorf("%s: another program's file is gone: %v", name, err)
		}
	}
}

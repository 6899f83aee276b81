package runtime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLoadSaysEverythingAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		document, err string
		warnings      []string
	}{
		"rules": {
			`{"family": "web", "networkMode": "bridge", "requiresCompatibilities": ["FARGATE"], "cpu": "256", "memory": "4096", "cpuu": "1",
			  "containerDefinitions": [{"name": "a", "image": "i", "stopTimeout": 1, "privileged": true, "dependsOn": [{"containerName": "b", "condition": "START"}],
			    "healthCheck": {"command": ["x"], "timeout": 90}}]}`,
			`task definition DIR/rules: $.containerDefinitions[0].stopTimeout: Granular stop timeout on container 'a' must be at least 2 seconds. (granular-timeout)
task definition DIR/rules: $.containerDefinitions[0].dependsOn: Cannot depend on container + 'b' because it does not exist (depends-on-exists)
task definition DIR/rules: $.networkMode: Fargate only supports network mode ‘awsvpc’. (fargate-network-mode)
task definition DIR/rules: $.memory: No Fargate configuration exists for given values: 256 CPU, 4096 memory. Valid memory for this CPU: 512 1024 2048. (fargate-size)
task definition DIR/rules: $.containerDefinitions[0].privileged: Fargate requires that the 'privileged' setting be 'false' (fargate-container-setting)`,
			[]string{
				`DIR/rules: $.cpuu: unknown key, ignored; did you mean "cpu"?`,
				"DIR/rules: $.containerDefinitions[0].healthCheck.timeout: timeout 90: not every ECS version takes more than 60 seconds (health-check-long-timeout)",
				"DIR/rules: $.networkMode: not emulated: localecs' own -network decides, awsvpc unless it says otherwise",
				"DIR/rules: $.containerDefinitions[0].privileged: not emulated: the container has no more rights than others",
			},
		},
		"types": {`{"family": 1, "cpu": 256}`, `task definition DIR/types: invalid task definition:
  $.cpu: must be a string, but is the number 256 (type)
  $.family: must be a string, but is the number 1 (type)`, nil},
		"syntax": {"family: web", "task definition DIR/syntax: line 1, column 3: this looks like YAML, but ECS takes JSON; `yq -o=json` converts it", nil},
		"large":  {strings.Repeat(" ", maxBytes+1), "read task definition: DIR/large is larger than 1024 KiB: is it the right file?", nil},
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(tt.document), 0o600); err != nil {
			t.Fatal(err)
		}
		_, warnings, err := Load(file)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		if diff := cmp.Diff(tt.err, strings.ReplaceAll(err.Error(), dir, "DIR")); diff != "" {
			t.Errorf("%s: error (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(strings.Join(tt.warnings, "\n"), strings.ReplaceAll(strings.Join(warnings, "\n"), dir, "DIR")); diff != "" {
			t.Errorf("%s: warnings (-want +got):\n%s", name, diff)
		}
	}
	if _, _, err := Load(filepath.Join(dir, "none")); err == nil || err.Error() != "read task definition: "+dir+"/none: no such file or directory" {
		t.Errorf("no file: %v", err)
	}
}

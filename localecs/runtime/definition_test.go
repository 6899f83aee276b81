package runtime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLoadReportsAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		document, err string
		warnings      []string
	}{
		"rules": {
			`{"family": "web", "networkMode": "bridge", "requiresCompatibilities": ["FARGATE"], "cpu": "256", "memory": "4096", "cpuu": "1",
			  "containerDefinitions": [{"name": "a", "image": "i", "stopTimeout": 1, "privileged": true, "dependsOn": [{"containerName": "b", "condition": "START"}],
			    "healthCheck": {"command": ["CMD-SHELL", "x", "y"]}}]}`,
			`task definition DIR/rules: Granular stop timeout on container 'a' must be at least 2 seconds. ($.containerDefinitions[0].stopTimeout: take 2 seconds or more, or remove it; timeout-low)
task definition DIR/rules: Cannot depend on container + 'b' because it does not exist ($.containerDefinitions[0].dependsOn[0].containerName: name a container of the task; depends-on-exists)
task definition DIR/rules: Fargate only supports network mode 'awsvpc'. ($.networkMode: set networkMode to awsvpc; fargate-network-mode)
task definition DIR/rules: No Fargate configuration exists for given values: 256 CPU, 4096 memory. See the Amazon ECS documentation for the valid values. ($.memory: the next valid size is cpu 512 with memory 4096; fargate-size)
task definition DIR/rules: Fargate requires that the ‘privileged’ setting be ‘false’ at the container level. ($.containerDefinitions[0].privileged: remove it; fargate-privileged)`,
			[]string{
				`DIR/rules: $.cpuu: unknown key; did you mean "cpu"?`,
				"DIR/rules: Health check of container 'a': what follows the first text after CMD-SHELL is ignored. ($.containerDefinitions[0].healthCheck.command: write the whole command as one text; health-check-arguments)",
				"DIR/rules: $.networkMode: not emulated: the -network flag of localecs decides, awsvpc by default",
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

package terraform_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/terraform/internal/stub"
	"github.com/meshtask/consul-ecs/terraform/internal/tftest"
)

// TestUpgradeGuideNamesTestsThatExist reads the last column of its tables of tests.
func TestUpgradeGuideNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	var tests strings.Builder
	for _, pattern := range []string{"*_test.go", "internal/*/*_test.go", "modules/*/tests/*.tftest.hcl"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(text)
		}
	}
	guide, err := os.ReadFile("UPGRADE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tables, _ := strings.Cut(string(guide), "## Defects of the older modules")
	name := regexp.MustCompile("`([a-zA-Z0-9_]+)`")
	rows := 0
	for line := range strings.Lines(tables) {
		columns := strings.Split(line, "|")
		if len(columns) != 5 || !strings.Contains(columns[3], "`") {
			continue
		}
		rows++
		for _, found := range name.FindAllStringSubmatch(columns[3], -1) {
			if all := tests.String(); !strings.Contains(all, "func "+found[1]+"(") &&
				!strings.Contains(all, `run "`+found[1]+`"`) {
				t.Errorf("there is no test %s", found[1])
			}
		}
	}
	if rows < 30 {
		t.Errorf("%d rows with tests, want 30 or more", rows)
	}
}

// TestMovedBlocksKeepTheRolesOfAnOlderModule follows the guide with a stand-in for the
// older module: without the blocks the roles are destroyed.
func TestMovedBlocksKeepTheRolesOfAnOlderModule(t *testing.T) {
	t.Parallel()
	testkit.Long(t)
	w := tftest.New(t, "testdata/upgrade", stub.AWS6)
	w.Apply(map[string]any{})
	install := func(name, as string) {
		if err := os.Rename(filepath.Join(w.Dir(), name), filepath.Join(w.Dir(), as)); err != nil {
			t.Fatal(err)
		}
		if out, code := w.Run(nil, "init", "-no-color"); code != 0 {
			t.Fatal(out)
		}
	}
	const roles = 2
	install("upgraded.tf.txt", "main.tf")
	if got := destroyed(t, w, "aws_iam_role"); len(got) != roles {
		t.Errorf("without moved blocks %q are destroyed, want both roles", got)
	}
	install("moved.tf.txt", "moved.tf")
	if got := destroyed(t, w, "aws_iam_role"); len(got) > 0 {
		t.Errorf("%q are destroyed in spite of the moved blocks", got)
	}
	if state := w.Apply(map[string]any{}); len(state.Resources) == 0 {
		t.Error("nothing is in the state")
	}
	w.Unchanged()
}

// destroyed returns the addresses of the resources of a type that a plan destroys or replaces.
func destroyed(t *testing.T, w *tftest.Workspace, resource string) (addresses []string) {
	t.Helper()
	out, code := w.Run(nil, "plan", "-json")
	if code != 0 {
		t.Fatal(out)
	}
	for line := range strings.Lines(out) {
		var event struct {
			Type   string
			Change struct {
				Action   string
				Resource struct {
					Addr string
					Type string `json:"resource_type"`
				}
			}
		}
		if json.Unmarshal([]byte(line), &event) != nil {
			continue
		}
		if event.Type != "planned_change" || event.Change.Resource.Type != resource {
			continue
		}
		if event.Change.Action == "delete" || event.Change.Action == "replace" {
			addresses = append(addresses, event.Change.Resource.Addr)
		}
	}
	return addresses
}

package consulecs_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

// TestReleaseWorkflow checks what the workflow of releases calls, and what it may do.
func TestReleaseWorkflow(t *testing.T) {
	t.Parallel()
	type step struct{ Uses, Run string }
	var workflow struct {
		On          struct{ Push struct{ Tags []string } }
		Permissions map[string]string
		Jobs        map[string]struct {
			Permissions map[string]string
			Steps       []step
		}
	}
	data, err := os.ReadFile(".github/workflows/release.yml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, &workflow); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"v*"}, workflow.On.Push.Tags); diff != "" {
		t.Error(diff)
	}
	if workflow.Permissions == nil || len(workflow.Permissions) > 0 {
		t.Errorf("permissions of all jobs %v, want none", workflow.Permissions)
	}
	permissions := map[string]map[string]string{}
	var targets []string
	pinned := regexp.MustCompile(`@v\d+\.\d+\.\d+$`)
	for name, job := range workflow.Jobs {
		permissions[name] = job.Permissions
		for _, s := range job.Steps {
			if s.Uses != "" && !pinned.MatchString(s.Uses) {
				t.Errorf("job %s: %s has no exact version", name, s.Uses)
			}
			targets = append(targets, callsOfMake(s.Run)...)
		}
	}
	want := map[string]map[string]string{
		"build": {"contents": "read"}, "publish": {"contents": "write", "packages": "write"},
	}
	if diff := cmp.Diff(want, permissions); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"release"}, targets); diff != "" {
		t.Error(diff)
	}
}

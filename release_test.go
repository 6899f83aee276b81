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
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"v*"}, workflow.On.Push.Tags); diff != "" {
		t.Error(diff)
	}
	if workflow.Permissions == nil || len(workflow.Permissions) > 0 {
		t.Errorf("permissions of all jobs %v, want none", workflow.Permissions)
	}
	permissions := map[string]map[string]string{}
	targets := map[string]bool{}
	pinned := regexp.MustCompile(`@v\d+\.\d+\.\d+$`)
	makes := regexp.MustCompile(`(?m)\bmake ([a-z-]+)`)
	for name, job := range workflow.Jobs {
		permissions[name] = job.Permissions
		for _, s := range job.Steps {
			if s.Uses != "" && !pinned.MatchString(s.Uses) {
				t.Errorf("job %s: %s has no exact version", name, s.Uses)
			}
			for _, call := range makes.FindAllStringSubmatch(s.Run, -1) {
				targets[call[1]] = true
			}
		}
	}
	want := map[string]map[string]string{
		"build": {"contents": "read"}, "publish": {"contents": "write", "packages": "write"},
	}
	if diff := cmp.Diff(want, permissions); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]bool{"release": true}, targets); diff != "" {
		t.Error(diff)
	}
	for target := range targets {
		if !regexp.MustCompile(`(?m)^` + target + `:`).Match(makefile) {
			t.Errorf("the Makefile has no target %s", target)
		}
	}
}

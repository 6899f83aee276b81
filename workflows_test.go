package consulecs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"
)

// makeTargets returns the targets of the Makefile.
func makeTargets(t *testing.T) []string {
	t.Helper()
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, m := range regexp.MustCompile(`(?m)^\.PHONY: (.+)$`).FindAllSubmatch(makefile, -1) {
		targets = append(targets, regexp.MustCompile(`\s+`).Split(string(m[1]), -1)...)
	}
	return targets
}

// callsOfMake returns the targets that a text calls.
func callsOfMake(text string) (targets []string) {
	for _, m := range regexp.MustCompile(`(?m)\bmake ([a-z][a-z0-9-]*)`).FindAllStringSubmatch(text, -1) {
		targets = append(targets, m[1])
	}
	return targets
}

// TestWorkflowsCallTargetsThatExist reads every workflow.
func TestWorkflowsCallTargetsThatExist(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(".github/workflows/*.yml")
	if err != nil {
		t.Fatal(err)
	}
	called, targets := map[string][]string{}, makeTargets(t)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var workflow struct {
			Jobs map[string]struct {
				RunsOn string `yaml:"runs-on"`
				Steps  []struct{ Run, Uses string }
			}
		}
		if err := yaml.Unmarshal(text, &workflow); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for name, job := range workflow.Jobs {
			if job.RunsOn == "" {
				t.Errorf("%s: job %s has no runs-on", file, name)
			}
			for _, step := range job.Steps {
				if (step.Run == "") == (step.Uses == "") {
					t.Errorf("%s: job %s has a step without run or uses, or with both", file, name)
				}
				called[filepath.Base(file)] = append(called[filepath.Base(file)], callsOfMake(step.Run)...)
			}
		}
	}
	for file, names := range called {
		for _, name := range names {
			if !slices.Contains(targets, name) {
				t.Errorf("%s calls make %s, which the Makefile does not have", file, name)
			}
		}
	}
	for file, want := range map[string][]string{"check.yml": {"check", "unit", "test"}, "nightly.yml": {"test-full"}} {
		for _, name := range want {
			if !slices.Contains(called[file], name) {
				t.Errorf("%s does not call make %s", file, name)
			}
		}
	}
}

// TestYAMLOfTheRepositoryIsValid: issue templates and the configuration of linters, whose linters
// are those of make check.
func TestYAMLOfTheRepositoryIsValid(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(".github/ISSUE_TEMPLATE/*.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, ".golangci.yml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var document struct {
			Linters    struct{ Enable []string }
			Formatters struct{ Enable []string }
		}
		if err := yaml.Unmarshal(text, &document); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		known := []string{"govet", "staticcheck", "unused", "gofmt"}
		for _, linter := range slices.Concat(document.Linters.Enable, document.Formatters.Enable) {
			if !slices.Contains(known, linter) {
				t.Errorf("%s enables %s, which make check does not have", file, linter)
			}
		}
	}
}

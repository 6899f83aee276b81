package consulecs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestIndexOfExamplesIsComplete: each directory of examples has a row.
func TestIndexOfExamplesIsComplete(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("examples/README.md")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir("examples")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, e := range entries {
		if e.IsDir() {
			want = append(want, e.Name())
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^\| .* \| \[([a-z-]+)\]\(([a-z-]+)\) \|$`).FindAllSubmatch(page, -1) {
		if string(m[1]) != string(m[2]) {
			t.Errorf("%s links to %s", m[1], m[2])
		}
		got = append(got, string(m[2]))
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("index of examples (-want +got):\n%s", diff)
	}
}

// TestContributingNamesWhatExists: files, directories and tests of the recipes.
func TestContributingNamesWhatExists(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(page), "\n"); lines > 150 {
		t.Errorf("%d lines, at most 150", lines)
	}
	var tests strings.Builder
	for _, pattern := range []string{"*_test.go", "*/*_test.go", "*/*/*_test.go", "*/*/*/*_test.go"} {
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
	for _, m := range regexp.MustCompile("`([a-z]+(?:/[a-z._-]+)+|Test\\w+)`").FindAllStringSubmatch(string(page), -1) {
		if name := m[1]; strings.HasPrefix(name, "Test") {
			if !strings.Contains(tests.String(), "func "+name+"(") {
				t.Errorf("there is no %s", name)
			}
		} else if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
}

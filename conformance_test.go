package consulecs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// The scenarios of docs/localecs/fidelity.md name the tests that prove them.
func TestConformanceTableNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/localecs/fidelity.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z]+)\\.(Test\\w+)`").FindAllStringSubmatch(string(page), -1)
	if len(named) < 80 {
		t.Fatalf("the table names %d tests, want one of each scenario", len(named))
	}
	for _, name := range named {
		found := false
		for _, dir := range []string{".", "localecs", "localecs/ecs"} {
			files, err := filepath.Glob(filepath.Join(dir, name[1], "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				found = found || regexp.MustCompile(`(?m)^func `+name[2]+`\(`).Match(text)
			}
		}
		if !found {
			t.Errorf("package %s has no %s", name[1], name[2])
		}
	}
}

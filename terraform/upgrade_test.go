package terraform_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
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
			if all := tests.String(); !strings.Contains(all, "func "+found[1]+"(") && !strings.Contains(all, `run "`+found[1]+`"`) {
				t.Errorf("there is no test %s", found[1])
			}
		}
	}
	if rows < 30 {
		t.Errorf("%d rows with tests, want 30 or more", rows)
	}
}

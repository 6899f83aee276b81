package consulecs_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The rows of docs/localecs/fidelity.md link to the tests that prove them.
func TestConformanceTableNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	const dir = "docs/localecs"
	page, err := os.ReadFile(filepath.Join(dir, "fidelity.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| Scenario | Faithful | Tests |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")
	if !strings.Contains(string(page), fmt.Sprintf("the %d rows", len(rows))) {
		t.Errorf("the table has %d rows, which the text above it does not say", len(rows))
	}
	link := regexp.MustCompile("`([a-z]+)\\.(Test\\w+)`(?:\\]\\((\\S+)\\))?")
	for _, row := range rows {
		named := link.FindAllStringSubmatch(row, -1)
		if len(named) == 0 {
			t.Errorf("no test: %s", row)
		}
		for _, name := range named {
			file := filepath.Join(dir, name[3])
			text, err := os.ReadFile(file)
			if err != nil {
				t.Error(err)
			}
			declared := regexp.MustCompile(`(?m)^func ` + name[2] + `\(`).Match(text)
			if !declared || path.Base(path.Dir(name[3])) != name[1] {
				t.Errorf("%s.%s is not in %s", name[1], name[2], file)
			}
		}
	}
}

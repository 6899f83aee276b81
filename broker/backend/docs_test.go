package backend_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPageHasTheTestedSetup compares docs/TOKENS.md with the files that the tests of this
// package run and read.
func TestPageHasTheTestedSetup(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/TOKENS.md")
	if err != nil {
		t.Fatal(err)
	}
	for file, language := range map[string]string{"consul-login.sh": "sh", "vault-broker.hcl": "hcl"} {
		text, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if block := "```" + language + "\n" + string(text) + "```\n"; !strings.Contains(string(page), block) {
			t.Errorf("docs/TOKENS.md does not show testdata/%s:\n\n%s", file, block)
		}
	}
}

// TestPageHasTheBackendsOfTheSuite compares the table of docs/TOKENS.md with what the suite runs.
// TestEveryTokenBackendIsKnown of subcommand compares it with the program.
func TestPageHasTheBackendsOfTheSuite(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/TOKENS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## Backends\n")
	table, _, _ = strings.Cut(table, "\n### ")
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllStringSubmatch(table, -1) {
		listed = append(listed, row[1])
	}
	slices.Sort(listed)
	if d := cmp.Diff(slices.Sorted(maps.Keys(systems(t))), listed); d != "" {
		t.Errorf("backends of docs/TOKENS.md (-systems +listed):\n%s", d)
	}
}

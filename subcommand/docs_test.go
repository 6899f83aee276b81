package subcommand

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPagesNameEveryFlag: some page has a flag of each name that --help lists. Each help has
// an example.
func TestPagesNameEveryFlag(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	var text strings.Builder
	for _, page := range append(pages, "../README.md") {
		part, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(part)
	}
	named := map[string]bool{}
	for _, f := range regexp.MustCompile(`(?:^|[^\w-])-([a-z][a-z-]*)`).FindAllStringSubmatch(text.String(), -1) {
		named[f[1]] = true
	}
	check := func(name string, declare func(*flag.FlagSet)) {
		fs := flag.NewFlagSet(name, flag.ContinueOnError)
		declare(fs)
		fs.VisitAll(func(f *flag.Flag) {
			if !named[f.Name] {
				t.Errorf("no page names %s -%s", name, f.Name)
			}
		})
	}
	for name, command := range commands() {
		if command.Flags != nil {
			check(name, command.Flags)
		}
		if !strings.Contains(command.Help, "\nExample") {
			t.Errorf("the help of %s has no example", name)
		}
	}
	for name, verb := range aclVerbs() {
		check("acl "+name, func(fs *flag.FlagSet) { verb(fs) })
	}
}

// TestOutagesPageHasLogLines: each log line of the page is one that the program writes.
func TestOutagesPageHasLogLines(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/OUTAGES.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file, "_test.go") {
			source.Write(text)
		}
	}
	lines := regexp.MustCompile("(?:INFO|WARN) ((?:`[^`]+`(?:, )?)+)").FindAllStringSubmatch(string(page), -1)
	if len(lines) == 0 {
		t.Error("the page has no log line")
	}
	for _, group := range lines {
		for _, line := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(group[1], -1) {
			text := strings.TrimSuffix(line[1], " failed, retrying") // package retry adds that
			if !strings.Contains(source.String(), `"`+text+`"`) {
				t.Errorf("no command logs %q", line[1])
			}
		}
	}
}

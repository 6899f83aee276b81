package consulecs_test

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// unran returns the packages with tests that tools/unran.sh misses in the output of go
// test.
func unran(t *testing.T, output string) []string {
	t.Helper()
	testkit.RequireOnPath(t, "bash", "git")
	cmd := exec.Command("tools/unran.sh")
	cmd.Stdin = strings.NewReader(output)
	out, err := cmd.CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if (err == nil) != (len(out) == 0) {
		t.Fatalf("%v\n%s", err, out)
	}
	return lines[1:]
}

func TestPackagesWithoutARunAreFound(t *testing.T) {
	t.Parallel()
	all := unran(t, "ok  \t"+module+"/none\t0.1s\n")
	for _, want := range []string{module, module + "/localecs/command", module + "/localecs/ecs/scheduler", module +
		"/tools/aclcompare", module + "/terraform"} {
		if !slices.Contains(all, want) {
			t.Errorf("%s was not missed", want)
		}
	}
	var output strings.Builder
	for i, p := range all {
		line := "ok  \t" + p + "\t0.1s\n"
		switch {
		case p == module+"/config":
			line = "FAIL\t" + p + "\t0.1s\n"
		case p == module+"/taskdef":
			line = "ok  \t" + p + "\t0.1s [no tests to run]\n"
		case i%2 == 1:
			line = "ok  \t" + p + "\t(cached)\n"
		}
		output.WriteString(line)
	}
	if got := unran(t, output.String()); !slices.Equal(got, []string{module + "/config", module + "/taskdef"}) {
		t.Errorf("missed %q, want config and taskdef", got)
	}
	if got := unran(t, strings.NewReplacer("FAIL", "ok", " [no tests to run]",
		"").Replace(output.String())); len(got) != 0 {
		t.Errorf("missed %q though all ran", got)
	}
}

// TestVulnWithoutItsDatabase: offline, before a first run, the error has the reason.
func TestVulnWithoutItsDatabase(t *testing.T) {
	t.Parallel()
	testkit.RequireOnPath(t, "bash", "go")
	cmd := exec.Command("tools/vuln.sh")
	cmd.Env = append(os.Environ(), "GOMODCACHE="+t.TempDir(), "GOPROXY=off", "GOTOOLCHAIN=local", "GOFLAGS=-modcacherw")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("it succeeds")
	}
	if !strings.Contains(string(out), "golang.org/x/vulndb") {
		t.Errorf("output %q without the module that is missing", out)
	}
}

// TestUnitIsWhatNeedsNoServer: make unit runs the packages whose tests start nothing that make tools
// installs, and all of them.
func TestUnitIsWhatNeedsNoServer(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(makefile), "\nUNIT := ")
	list, _, _ = strings.Cut(strings.ReplaceAll(list, "\\\n", ""), "\n")
	starts := regexp.MustCompile(`(?m)testkit\.(Servers|StartConsul|RequireBinary|Binary|OwnNetwork)\(|` +
		`^package dockerengine|internal/testkit/(vault|dockerengine)"$`)
	needs := map[string]bool{} // by package
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{"terraform", "tools", "testdata", ".tools", ".git"}, d.Name()):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		needs[filepath.Dir(path)] = needs[filepath.Dir(path)] || starts.Match(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(needs, func(_ string, need bool) bool { return need })
	if diff := cmp.Diff(slices.Sorted(maps.Keys(needs)), strings.Fields(list)); diff != "" {
		t.Errorf("UNIT of the Makefile (-want +got):\n%s", diff)
	}
}

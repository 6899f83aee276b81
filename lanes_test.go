package consulecs_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

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

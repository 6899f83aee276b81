package consulecs_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unran returns the packages with tests that tools/unran.sh misses in the output of go
// test.
func unran(t *testing.T, output string) []string {
	t.Helper()
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

// TestCommitGivesOneProgram builds one commit in two checkouts, of which one has a tag, as a shallow
// clone has none.
func TestCommitGivesOneProgram(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	goMod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	goMod, _, _ = bytes.Cut(goMod, []byte("\nrequire"))
	var programs [][]byte
	for _, tag := range []string{"", "v1.0.0-beta.1"} {
		dir := t.TempDir()
		for name, data := range map[string][]byte{
			"Makefile": makefile, "go.mod": goMod, "cmd/consul-ecs/main.go": []byte("package main\n\nfunc main() {}\n"),
		} {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		commands := [][]string{
			{"git", "init", "-q"}, {"git", "add", "Makefile", "go.mod", "cmd"}, {"git", "commit", "-q", "-m", "One"},
		}
		if tag != "" {
			commands = append(commands, []string{"git", "tag", tag})
		}
		for _, command := range append(commands, []string{"make", "dist-amd64"}) {
			cmd := exec.Command(command[0], command[1:]...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=one", "GIT_AUTHOR_EMAIL=one@example.com",
				"GIT_AUTHOR_DATE=2026-01-01T00:00:00Z",
				"GIT_COMMITTER_NAME=one", "GIT_COMMITTER_EMAIL=one@example.com",
				"GIT_COMMITTER_DATE=2026-01-01T00:00:00Z")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%q: %v\n%s", command, err, out)
			}
		}
		program, err := os.ReadFile(filepath.Join(dir, "dist/amd64/consul-ecs"))
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, program)
	}
	if !bytes.Equal(programs[0], programs[1]) {
		t.Error("the program depends on the tags of the checkout")
	}
}

// TestVulnWithoutItsDatabase: offline, before a first run, the error has the reason.
func TestVulnWithoutItsDatabase(t *testing.T) {
	t.Parallel()
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

package main

import (
	"bytes"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// goTool runs go in the project and returns its output's words.
func goTool(t *testing.T, args ...string) []string {
	t.Helper()
	testkit.RequireOnPath(t, "go")
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = testkit.Root()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	return strings.Fields(string(out))
}

// One call of Method by name, as in text/template, and the linker keeps every
// exported method of every type: 4 MB, in every task.
func TestNothingInConsulEcsCallsMethodsByName(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "consul-ecs")
	goTool(t, "build", "-o", program, "./cmd/consul-ecs")
	symbols := goTool(t, "tool", "nm", program)
	if !slices.Contains(symbols, "main.main") {
		t.Fatal("no symbols")
	}
	for _, s := range []string{
		"reflect.Value.MethodByName", "text/template.(*Template).Execute", "html/template.(*Template).Execute",
		"github.com/mitchellh/cli.(*CLI).Run",
	} {
		if slices.Contains(symbols, s) {
			t.Errorf("%s is linked", s)
		}
	}
}

// Libraries that were taken out for their size.
func TestLargeLibrariesStayOut(t *testing.T) {
	t.Parallel()
	for _, dep := range goTool(t, "list", "-deps", "./cmd/consul-ecs") {
		for _, prefix := range []string{
			"github.com/santhosh-tekuri/jsonschema", "github.com/Masterminds/", "github.com/tidwall/",
			"github.com/klauspost/",
		} {
			if strings.HasPrefix(dep, prefix) {
				t.Errorf("consul-ecs imports %s", dep)
			}
		}
	}
}

// What make size shows is in the program.
func TestProbesAreImportsOfConsulEcs(t *testing.T) {
	t.Parallel()
	deps := goTool(t, "list", "-deps", "./cmd/consul-ecs")
	for _, p := range probes() {
		f, err := parser.ParseFile(token.NewFileSet(), "main.go", p.source(), 0)
		if err != nil {
			t.Errorf("%s: %v", p.what, err)
			continue
		}
		for _, i := range f.Imports {
			if path, _ := strconv.Unquote(i.Path.Value); !slices.Contains(deps, path) {
				t.Errorf("%s: consul-ecs does not import %s", p.what, path)
			}
		}
	}
}

func TestMemoryOfThisProcess(t *testing.T) {
	t.Parallel()
	now, err := memory(os.Getpid(), "VmRSS")
	if err != nil {
		t.Fatal(err)
	}
	if now < 1 || now > 10_000 {
		t.Errorf("got %v MB, want 1 to 10,000", now)
	}
	if most, err := memory(os.Getpid(), "VmHWM"); err != nil || most < now/2 {
		t.Errorf("at most %v MB, %v", most, err)
	}
	if _, err := memory(os.Getpid(), "VmNone"); err == nil {
		t.Error("a key that does not exist")
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := table(&b, "Title", []row{{"one", 1.234, ""}, {"twenty", 20, "a note"}}); err != nil {
		t.Fatal(err)
	}
	want := "Title\n\n  one       1.23 MB  \n  twenty   20.00 MB  a note\n\n"
	if b.String() != want {
		t.Errorf("got  %q\nwant %q", b.String(), want)
	}
}

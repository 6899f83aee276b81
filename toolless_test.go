package consulecs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// toolless runs go test -short in a directory of a checkout, and returns its output. PATH and HOME are
// empty for the tests, and the environment has nothing else.
func toolless(t *testing.T, checkout, dir string, args ...string) (string, error) {
	t.Helper()
	testkit.RequireOnPath(t, "go", "env")
	env, err := exec.LookPath("env")
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{"test", "-short", "-vet=off", "-exec", env + " -i PATH= HOME=" + t.TempDir()}, args...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = filepath.Join(checkout, dir)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestPackagesPassWithoutTools: who clones the repository may run go test before make tools.
func TestPackagesPassWithoutTools(t *testing.T) {
	testkit.Long(t)
	checkout := testkit.CopyTree(t)
	for _, dir := range []string{".", "terraform", "tools/aclcompare"} {
		t.Run(dir, func(t *testing.T) {
			if out, err := toolless(t, checkout, dir, "./..."); err != nil {
				t.Errorf("go test: %v\n%s", err, out)
			}
		})
	}
}

// TestServersAreRequired runs the tests that use the servers of their package's TestMain: without
// Consul, each has to skip before it touches a server.
func TestServersAreRequired(t *testing.T) {
	t.Parallel()
	var packages, tests []string
	for dir, names := range serverTests(t) {
		packages, tests = append(packages, "./"+dir), append(tests, names...)
	}
	if len(packages) < 8 {
		t.Fatalf("servers are in %q only", packages)
	}
	args := append([]string{"-run", "^(" + strings.Join(tests, "|") + ")$"}, packages...)
	out, err := toolless(t, testkit.CopyTree(t), ".", args...)
	if err != nil {
		t.Errorf("go test: %v\n%s", err, out)
	}
}

// serverTests returns, by directory, the tests that reach a package's variable of type
// *testkit.Consul, also by functions of the package's tests.
func serverTests(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	deeper, err := filepath.Glob("*/*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	uses := map[string]map[string][]string{} // by directory and function, the names that it uses
	servers := map[string][]string{}
	for _, file := range append(files, deeper...) {
		dir := filepath.Dir(file)
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if uses[dir] == nil {
			uses[dir] = map[string][]string{}
		}
		for _, d := range parsed.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				ast.Inspect(d, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok {
						uses[dir][d.Name.Name] = append(uses[dir][d.Name.Name], id.Name)
					}
					return true
				})
			case *ast.GenDecl:
				servers[dir] = append(servers[dir], serverVariables(d)...)
			}
		}
	}
	tests := map[string][]string{}
	for dir, names := range servers {
		for grown := len(names) > 0; grown; {
			grown = false
			for function, used := range uses[dir] {
				if function == "TestMain" || slices.Contains(names, function) {
					continue
				}
				if slices.ContainsFunc(used, func(name string) bool { return slices.Contains(names, name) }) {
					names, grown = append(names, function), true
				}
			}
		}
		for _, name := range names {
			if strings.HasPrefix(name, "Test") {
				tests[dir] = append(tests[dir], name)
			}
		}
	}
	return tests
}

// serverVariables returns the names of a declaration's variables of type *testkit.Consul.
func serverVariables(d *ast.GenDecl) (names []string) {
	for _, s := range d.Specs {
		v, ok := s.(*ast.ValueSpec)
		if !ok {
			continue
		}
		pointer, ok := v.Type.(*ast.StarExpr)
		if !ok {
			continue
		}
		if of, ok := pointer.X.(*ast.SelectorExpr); ok && of.Sel.Name == "Consul" {
			for _, name := range v.Names {
				names = append(names, name.Name)
			}
		}
	}
	return names
}

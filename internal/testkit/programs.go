package testkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Programs returns a directory with static builds of consul-ecs, localecs and the programs
// of examples, hello and tokendemo: CONSUL_ECS_BIN, which make test sets to what make build
// has built, or else a build for this test.
func Programs(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv("CONSUL_ECS_BIN"); dir != "" {
		for _, name := range []string{"consul-ecs", "localecs", "hello", "tokendemo"} {
			// Also for go test, whose cached results depend on the files that a test looked at.
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	RequireOnPath(t, "go")
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", dir+"/", "./cmd/consul-ecs", "./cmd/localecs",
		"./examples/hello-mesh/hello", "./examples/token-broker/tokendemo")
	build.Dir, build.Env = Root(), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	return dir
}

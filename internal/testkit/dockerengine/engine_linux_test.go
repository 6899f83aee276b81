package dockerengine

import (
	"archive/tar"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.RunRole(Roles())
	os.Exit(m.Run())
}

// TestNetworks: containers on a network of the user's find each other by name,
// by a link-local address of choice, and by sharing a namespace.
func TestNetworks(t *testing.T) {
	e := Start(t)
	image := hello(t, e)
	network := e.Run(t, "network", "create", "--label", e.ID, "--subnet=169.254.170.0/24", e.ID+"-tasks")
	run := []string{"run", "-d", "--label", e.ID, "--network", network, "--ip", "169.254.170.2", "--network-alias", "api"}
	server := e.Run(t, append(run, image, "/hello", "api", "0.0.0.0:80")...)

	for name, url := range map[string]string{
		"by name":              "http://api/",
		"by address":           "http://169.254.170.2/",
		"from beside the api":  "http://127.0.0.1/",
		"by the other's alias": "http://api:80/",
	} {
		t.Run(name, func(t *testing.T) {
			in := network
			if strings.Contains(name, "beside") {
				in = "container:" + server
			}
			testkit.Eventually(t, url+" answers", func() bool {
				_, code := e.Try("run", "--rm", "--init", "--label", e.ID, "--network", in, image, "/hello", "get", url)
				return code == 0
			})
		})
	}
}

// hello makes an image of the example's program.
func hello(t *testing.T, e *Engine) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "hello")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./examples/hello-mesh/hello")
	build.Dir, build.Env = testkit.Root(), append(os.Environ(), "CGO_ENABLED=0")
	if out, code := Finish(build); code != 0 {
		t.Fatalf("go build: exit code %d: %s%s", code, out.Stdout, out.Stderr)
	}
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	w.WriteHeader(&tar.Header{Name: "hello", Mode: 0o755, Size: int64(len(data))})
	w.Write(data)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	load := e.Command(t.Context(), "import", "-", e.ID+"hello")
	load.Stdin = &archive
	if out, code := Finish(load); code != 0 {
		t.Fatalf("docker import: exit code %d: %s", code, out.Stderr)
	}
	return e.ID + "hello"
}

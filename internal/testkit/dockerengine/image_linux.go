package dockerengine

import (
	"archive/tar"
	"bytes"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// Dir is a directory of an image.
type Dir struct {
	Path  string
	Mode  int64
	Owner int // user and group
}

// Image makes an image FROM scratch and returns its name, the engine's ID and
// name. Programs of this machine are by their paths in the image; their libraries
// come along. Changes are instructions of a Dockerfile, such as USER 5996.
func (e *Engine) Image(t testing.TB, name string, programs map[string]string, dirs []Dir, changes ...string) string {
	t.Helper()
	binds, err := new(runtime.Resolver).Binds(runtime.Image{Programs: programs})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, b := range binds {
		files[b.Target] = b.Source
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, d := range dirs {
		w.WriteHeader(&tar.Header{
			Typeflag: tar.TypeDir, Name: d.Path[1:] + "/", Mode: d.Mode, Uid: d.Owner, Gid: d.Owner,
		})
	}
	for _, target := range slices.Sorted(maps.Keys(files)) {
		data, err := os.ReadFile(files[target])
		if err != nil {
			t.Fatal(err)
		}
		w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: target[1:], Mode: 0o755, Size: int64(len(data))})
		w.Write(data)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	args := []string{"import"}
	for _, c := range changes {
		args = append(args, "--change", c)
	}
	load := e.Command(t.Context(), append(args, "-", e.ID+name)...)
	load.Stdin = &archive
	if out, code := Finish(load); code != 0 {
		t.Fatalf("docker import: exit code %d: %s", code, out.Stderr)
	}
	return e.ID + name
}

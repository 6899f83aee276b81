package docker

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	specs "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// sample returns an image of two programs, one of which is large, and a directory.
func sample(t *testing.T) (runtime.Image, []runtime.Bind) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	small, large := write("small", "#!", 0o755), write("large", strings.Repeat("x", Large), 0o755)
	ca := write("certs/ca.pem", "CA", 0o644)
	i := runtime.Image{
		Name: "web", Entrypoint: []string{"/bin/small"}, Cmd: []string{"serve"}, Env: []string{"A=1"}, User: "envoy", WorkingDir: "/work",
		StopSignal: "INT", Users: map[string]string{"envoy": "5995:5990"},
		Volumes: []runtime.Dir{{Path: "/tmp/x", Mode: 0o1777}, {Path: "/consul", UID: 5996, GID: 5996}},
	}
	return i, []runtime.Bind{{Source: small, Target: "/bin/small"}, {Source: large, Target: "/bin/large"}, {Source: ca, Target: "/etc/ssl/ca.pem"}}
}

// untar lists a tar, and what its files have.
func untar(t *testing.T, b []byte) (list []string, files map[string][]byte) {
	t.Helper()
	files = map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(b)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list, files
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = body
		list = append(list, fmt.Sprintf("%s %o %d:%d %s", h.Name, h.Mode, h.Uid, h.Gid, h.Linkname))
	}
}

func TestArchive(t *testing.T) {
	t.Parallel()
	i, binds := sample(t)
	a, err := newArchive("localecs/web:latest", i, binds, map[string]string{"made": "here"})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := a.Write(&b); err != nil {
		t.Fatal(err)
	}
	_, files := untar(t, b.Bytes())
	var manifest []entry
	if err := json.Unmarshal(files["manifest.json"], &manifest); err != nil {
		t.Fatalf("%v: %s", err, files["manifest.json"])
	}
	if len(manifest) != 1 || len(manifest[0].Layers) != 2 {
		t.Fatalf("%s, want one image of two layers", files["manifest.json"])
	}
	sum := sha256.Sum256(files[manifest[0].Config])
	if id := "sha256:" + hex.EncodeToString(sum[:]); id != a.ID.String() || manifest[0].RepoTags[0] != "localecs/web:latest" {
		t.Errorf("ID %s of %s, want %s", id, files["manifest.json"], a.ID)
	}
	var c specs.Image
	if err := json.Unmarshal(files[manifest[0].Config], &c); err != nil {
		t.Fatal(err)
	}
	want := specs.ImageConfig{
		User: "envoy", Env: []string{"A=1"}, Entrypoint: []string{"/bin/small"}, Cmd: []string{"serve"}, WorkingDir: "/work",
		Volumes: map[string]struct{}{"/consul": {}, "/tmp/x": {}}, StopSignal: "INT",
		Labels: map[string]string{"made": "here"},
	}
	if diff := cmp.Diff(want, c.Config); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for n, layer := range manifest[0].Layers {
		sum := sha256.Sum256(files[layer])
		if got := "sha256:" + hex.EncodeToString(sum[:]); got != c.RootFS.DiffIDs[n].String() {
			t.Errorf("layer %d is %s, want %s", n, got, c.RootFS.DiffIDs[n])
		}
	}
	base, texts := untar(t, files[manifest[0].Layers[0]])
	if diff := cmp.Diff([]string{
		"tmp/ 755 0:0 ", "tmp/x/ 1777 0:0 ", "consul/ 755 5996:5996 ", "etc/ 755 0:0 ", "root/ 700 0:0 ", "proc/ 755 0:0 ", "sys/ 755 0:0 ", "dev/ 755 0:0 ", "run/ 755 0:0 ",
		"etc/passwd 644 0:0 ", "etc/group 644 0:0 ", "bin/ 755 0:0 ", "bin/small 755 0:0 ",
		"etc/ssl/ 755 0:0 ", "etc/ssl/ca.pem 644 0:0 ",
	}, base); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !strings.Contains(string(texts["etc/passwd"]), "envoy:x:5995:5990:") {
		t.Errorf("passwd %s", texts["etc/passwd"])
	}
	if large, _ := untar(t, files[manifest[0].Layers[1]]); len(large) != 2 || large[1] != "bin/large 755 0:0 " {
		t.Errorf("the large file's layer has %q", large)
	}
}

// The same files make the same image, whenever they were written; other ones
// another. A file that changes after it was summed up is an error.
func TestIDIsTheContents(t *testing.T) {
	t.Parallel()
	i, binds := sample(t)
	j, others := sample(t)
	a, errA := newArchive("a", i, binds, nil)
	b, errB := newArchive("b", j, others, nil)
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	if a.ID != b.ID {
		t.Fatalf("IDs %s and %s, want the same", a.ID, b.ID)
	}
	if err := os.WriteFile(binds[0].Source, []byte("other"), 0o755); err != nil {
		t.Fatal(err)
	}
	if c, err := newArchive("a", i, binds, nil); err != nil || c.ID == a.ID {
		t.Errorf("%v: still %s", err, a.ID)
	}
	if err := a.Write(io.Discard); err == nil {
		t.Error("a file has changed, without an error")
	}
	if err := os.Remove(binds[0].Source); err != nil {
		t.Fatal(err)
	}
	if _, err := newArchive("a", i, binds, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file is not there: %v", err)
	}
}

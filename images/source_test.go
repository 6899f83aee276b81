package images_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/meshtask/consul-ecs/images"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/internal/testkit/registry"
)

// reference is of a registry that no test has.
const reference = "registry.invalid/team/web:1"

// fromSource locks the reference with a copy alone.
func fromSource(t *testing.T, argument string) (digest string, failures []string) {
	t.Helper()
	source, err := images.Open(t.Context(), argument, options().Timeout)
	if err != nil {
		t.Fatal(err)
	}
	o := options()
	o.From = []*images.Source{source}
	lock, failures := lockOf(t, o, reference)
	if failures != nil {
		return "", failures
	}
	return lock.Images[reference].Digest, nil
}

// index returns an index of two platforms.
func index(t *testing.T) v1.ImageIndex {
	return registry.Index(t, registry.Image(t, "linux/amd64", web()), registry.Image(t, "linux/arm64", web()))
}

// newLayout returns an empty layout.
func newLayout(t *testing.T) layout.Path {
	t.Helper()
	path, err := layout.Write(t.TempDir(), empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLayoutServesTheNamesInIt(t *testing.T) {
	t.Parallel()
	for key, value := range map[string]string{
		"org.opencontainers.image.ref.name": "registry.invalid/team/web:1",
		"io.containerd.image.name":          "registry.invalid/team/web:1",
	} {
		path, index := newLayout(t), index(t)
		if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{key: value})); err != nil {
			t.Fatal(err)
		}
		got, failures := fromSource(t, string(path))
		if failures != nil || got != digestOf(t, index) {
			t.Errorf("%s: %s %v", key, got, failures)
		}
	}
}

func TestLayoutServesANamedReferenceByItsTagOrItsOnlyImage(t *testing.T) {
	t.Parallel()
	path, image := newLayout(t), registry.Image(t, "linux/amd64", web())
	if err := path.AppendImage(image); err != nil {
		t.Fatal(err)
	}
	if got, failures := fromSource(t, reference+"="+string(path)); got != digestOf(t, image) {
		t.Errorf("the only image: %s %v", got, failures)
	}
	tagged := registry.Image(t, "linux/amd64", web())
	if err := path.AppendImage(tagged, layout.WithAnnotations(
		map[string]string{"org.opencontainers.image.ref.name": "1"})); err != nil {
		t.Fatal(err)
	}
	if got, failures := fromSource(t, reference+"="+string(path)); got != digestOf(t, tagged) {
		t.Errorf("that of the tag: %s %v", got, failures)
	}
}

func TestLayoutWhoseIndexIsTheImage(t *testing.T) {
	t.Parallel()
	index := index(t)
	path, err := layout.Write(t.TempDir(), index)
	if err != nil {
		t.Fatal(err)
	}
	if got, failures := fromSource(t, reference+"="+string(path)); got != digestOf(t, index) {
		t.Errorf("%s %v", got, failures)
	}
}

func TestLayoutInATarFile(t *testing.T) {
	t.Parallel()
	testkit.RequireOnPath(t, "tar")
	path, index := newLayout(t), index(t)
	if err := path.AppendIndex(index, layout.WithAnnotations(
		map[string]string{"io.containerd.image.name": reference})); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "web.tar")
	if out, err := exec.CommandContext(t.Context(), "tar", "-C", string(path), "-cf", file,
		".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got, failures := fromSource(t, file); got != digestOf(t, index) {
		t.Errorf("%s %v", got, failures)
	}
}

func TestCopyOfSomePlatformsServesThem(t *testing.T) {
	t.Parallel()
	index := index(t)
	path := newLayout(t)
	if err := path.AppendIndex(index); err != nil {
		t.Fatal(err)
	}
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(string(path), "blobs", "sha256", m.Manifests[1].Digest.Hex)); err != nil {
		t.Fatal(err)
	}
	source, err := images.Open(t.Context(), reference+"="+string(path), options().Timeout)
	if err != nil {
		t.Fatal(err)
	}
	o := options()
	o.From = []*images.Source{source}
	if diff := cmp.Diff([]string{"linux/amd64"}, mustLock(t, o, reference).PlatformNames()); diff != "" {
		t.Error(diff)
	}
}

func TestArchiveOfDockerSave(t *testing.T) {
	t.Parallel()
	tag, err := name.NewTag(reference)
	if err != nil {
		t.Fatal(err)
	}
	image := registry.Image(t, "linux/amd64", web())
	file := filepath.Join(t.TempDir(), "web.tar")
	if err := tarball.WriteToFile(file, tag, image); err != nil {
		t.Fatal(err)
	}
	for _, argument := range []string{file, reference + "=" + file, compress(t, file)} {
		if got, failures := fromSource(t, argument); got != digestOf(t, image) {
			t.Errorf("%s: %s %v", argument, got, failures)
		}
	}
}

// compress compresses a file by gzip.
func compress(t *testing.T, file string) string {
	t.Helper()
	from, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.Create(file + ".gz")
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	w := gzip.NewWriter(to)
	if _, err := io.Copy(w, from); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return to.Name()
}

// TestReadingACopyEndsAtTheTimeout: of its list, and of its layers, which are hashed.
func TestReadingACopyEndsAtTheTimeout(t *testing.T) {
	t.Parallel()
	tag, err := name.NewTag(reference)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "web.tar")
	if err := tarball.WriteToFile(file, tag, registry.Image(t, "linux/amd64", web())); err != nil {
		t.Fatal(err)
	}
	want := file + ": it was not read within 1ns: raise -timeout"
	if _, err := images.Open(t.Context(), file, time.Nanosecond); err == nil || err.Error() != want {
		t.Errorf("its list: %v, want %s", err, want)
	}
	source, err := images.Open(t.Context(), file, options().Timeout)
	if err != nil {
		t.Fatal(err)
	}
	o := options()
	o.From, o.Timeout = []*images.Source{source}, time.Nanosecond
	_, failures := lockOf(t, o, reference)
	if diff := cmp.Diff([]string{"image " + reference + ": " + want}, failures); diff != "" {
		t.Error(diff)
	}
}

func TestCopyThatIsDamagedIsNamed(t *testing.T) {
	t.Parallel()
	path, image := newLayout(t), registry.Image(t, "linux/amd64", web())
	if err := path.AppendImage(image); err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	blob := filepath.Join(string(path), "blobs", "sha256", digest.Hex)
	if err := os.WriteFile(blob, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, failures := fromSource(t, reference+"="+string(path))
	want := "image " + reference + ": " + string(path) + ": object " + digest.String() + " is damaged: its digest is "
	if len(failures) != 1 || !strings.HasPrefix(failures[0], want) {
		t.Errorf("%q, want %s", failures, want)
	}
}

func TestOpenNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "web.json")
	if err := os.WriteFile(text, []byte(strings.Repeat("{}", 1000)), 0o644); err != nil {
		t.Fatal(err)
	}
	layout := newLayout(t)
	for argument, want := range map[string]string{
		filepath.Join(dir, "no"): filepath.Join(dir, "no") + ": no such file or directory",
		dir: dir + ": neither an OCI layout (no index.json) nor an archive of `docker save` (no " +
			"manifest.json)",
		text:           text + ": it is no tar file, or damaged: ",
		string(layout): string(layout) + " names no image: use REFERENCE=" + string(layout),
	} {
		_, err := images.Open(t.Context(), argument, options().Timeout)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestOpenKeepsNoFilesOfARootDirectory: `docker export` is easily taken for `docker save`.
func TestOpenKeepsNoFilesOfARootDirectory(t *testing.T) { // not parallel: it measures memory
	path := filepath.Join(t.TempDir(), "export.tar")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	archive, content := tar.NewWriter(f), bytes.Repeat([]byte("x"), 1<<20)
	for i := range 50 {
		err = errors.Join(err,
			archive.WriteHeader(&tar.Header{Name: fmt.Sprint("usr/", i), Mode: 0o644, Size: int64(len(content))}))
		_, writeErr := archive.Write(content)
		err = errors.Join(err, writeErr)
	}
	if err := errors.Join(err, archive.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := images.Open(t.Context(), path, options().Timeout); err == nil {
		t.Error("it was taken for an archive of images")
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 10<<20 {
		t.Errorf("%d MiB were read into memory", used>>20)
	}
}

func TestReferenceThatACopyDoesNotHaveIsReadFromTheRegistry(t *testing.T) {
	t.Parallel()
	r := registry.Start(t)
	path := newLayout(t)
	if err := path.AppendIndex(index(t),
		layout.WithAnnotations(map[string]string{"io.containerd.image.name": reference})); err != nil {
		t.Fatal(err)
	}
	source, err := images.Open(t.Context(), string(path), options().Timeout)
	if err != nil {
		t.Fatal(err)
	}
	o := options()
	o.From = []*images.Source{source}
	image := registry.Image(t, "linux/amd64", web())
	if got := mustLock(t, o, r.Push(t, "web:1", image)); got.Digest != digestOf(t, image) {
		t.Errorf("%+v", got)
	}
}

func TestAmbiguousCopyIsRefused(t *testing.T) {
	t.Parallel()
	path := newLayout(t)
	for range 2 {
		if err := path.AppendImage(registry.Image(t, "linux/amd64", web())); err != nil {
			t.Fatal(err)
		}
	}
	_, failures := fromSource(t, reference+"="+string(path))
	want := "image " + reference + ": " + string(path) +
		": it has 2 images, and none with this name or tag: copy one image"
	if diff := cmp.Diff([]string{want}, failures); diff != "" {
		t.Error(diff)
	}
}

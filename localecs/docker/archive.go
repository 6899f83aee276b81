package docker

import (
	"archive/tar"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"time"

	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// Large is the size from which on a file has its own layer, in bytes.
const Large = 1 << 20

// archive is an image, ready to be written.
type archive struct {
	// ID is the image's, as the engine will know it: "sha256:…".
	ID digest.Digest
	// Name is its tag.
	name   string
	config []byte
	layers []summed
}

type summed struct {
	layer layer
	size  int64
	sum   string // hexadecimal
}

// newArchive reads everything once. binds are all files, libraries included, and no directories; name is
// "repository" or "repository:tag" for the engine, and the ID does not depend on it.
func newArchive(name string, i runtime.Image, binds []runtime.Bind, labels map[string]string) (*archive, error) {
	a := &archive{name: name}
	c := specs.Image{
		Created: &time.Time{}, Platform: specs.Platform{Architecture: goruntime.GOARCH, OS: "linux"},
		Config: specs.ImageConfig{
			User: i.User, Env: i.Env, Entrypoint: i.Entrypoint, Cmd: i.Cmd, WorkingDir: i.WorkingDir,
			Volumes: map[string]struct{}{}, StopSignal: i.StopSignal, Labels: labels,
		},
		RootFS: specs.RootFS{Type: "layers"},
	}
	for _, v := range i.Volumes {
		c.Config.Volumes[v.Path] = struct{}{}
	}
	all, err := layers(i, binds)
	if err != nil {
		return nil, fmt.Errorf("image %q: %w", i.Name, err)
	}
	for _, l := range all {
		sum := digest.Canonical.Digester()
		size := counter{to: sum.Hash()}
		if err := l.write(&size); err != nil {
			return nil, fmt.Errorf("image %q: %w", i.Name, err)
		}
		a.layers = append(a.layers, summed{l, size.n, sum.Digest().Encoded()})
		c.RootFS.DiffIDs = append(c.RootFS.DiffIDs, sum.Digest())
	}
	if a.config, err = json.Marshal(c); err != nil {
		return nil, err
	}
	a.ID = digest.FromBytes(a.config)
	return a, nil
}

type counter struct {
	to io.Writer
	n  int64
}

// Write passes b on.
func (c *counter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.n += int64(n)
	return n, err
}

type entry struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// Write writes the archive. A file that has changed since New is an error.
func (a *archive) Write(w io.Writer) error {
	t := tar.NewWriter(w)
	manifest := entry{Config: a.ID.Encoded() + ".json", RepoTags: []string{a.name}}
	for _, l := range a.layers {
		manifest.Layers = append(manifest.Layers, l.sum+"/layer.tar")
	}
	list, err := json.Marshal([]entry{manifest})
	if err != nil {
		return err
	}
	for _, text := range []struct {
		name string
		body []byte
	}{{"manifest.json", list}, {manifest.Config, a.config}} {
		if err := header(t, tar.Header{Name: text.name, Mode: 0o644, Size: int64(len(text.body))}); err != nil {
			return err
		}
		if _, err := t.Write(text.body); err != nil {
			return err
		}
	}
	for _, l := range a.layers {
		if err := header(t, tar.Header{Name: l.sum + "/layer.tar", Mode: 0o644, Size: l.size}); err != nil {
			return err
		}
		if err := l.layer.write(t); err != nil {
			return err
		}
	}
	return t.Close()
}

func header(t *tar.Writer, h tar.Header) error {
	h.Format = tar.FormatPAX
	h.Typeflag = cmp.Or(h.Typeflag, tar.TypeReg)
	return t.WriteHeader(&h)
}

func copyFile(t io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(t, f)
	return err
}

package images

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Source is a copy of images: a directory with an OCI layout, such a layout in a tar file, or
// an archive of `docker save`.
type Source struct {
	path string
	// reference is the one that is read from here, empty for all that have a name here.
	reference string
	entries   []entry
	// index is the index of a layout, when it is that of one image.
	index *manifest
	files files
}

// entry is an image in a source.
type entry struct {
	// names are full references; tag is one without a repository.
	names []string
	tag   string
	// open reads its manifest or index, and where to find what that names.
	open func(context.Context) (manifest, store, error)
}

// errNotHere is the error about an image that a source does not have.
var errNotHere = errors.New("not in this copy")

// Open reads the list of images in a copy: PATH, or REFERENCE=PATH for a copy of one image
// whose name is not in it. It ends after the timeout.
func Open(ctx context.Context, argument string, timeout time.Duration) (*Source, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, &timeoutError{timeout})
	defer cancel()
	reference, path, named := strings.Cut(argument, "=")
	if !named {
		reference, path = "", argument
	}
	s := &Source{path: path, reference: reference}
	if err := s.load(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if hasName := func(e entry) bool { return len(e.names) > 0 }; !named && !slices.ContainsFunc(s.entries, hasName) {
		return nil, fmt.Errorf("%s names no image: use REFERENCE=%s, with the reference of the definition", path, path)
	}
	return s, nil
}

// load reads the index of a layout, or the list of an archive.
func (s *Source) load(ctx context.Context) error {
	info, err := os.Stat(s.path)
	if err != nil {
		return plain(err)
	}
	if info.IsDir() {
		s.files = directory(s.path)
	} else if s.files, err = readArchive(ctx, s.path); err != nil {
		return err
	}
	index, err := s.files("index.json")
	if err == nil {
		return s.loadLayout(index)
	}
	if list, err := s.files("manifest.json"); err == nil && !info.IsDir() {
		return s.loadArchive(list)
	}
	return errors.New("neither an OCI layout (no index.json) nor an archive of `docker save` (no manifest.json)")
}

// Annotations that name an image in a layout.
const (
	annotationRef  = "org.opencontainers.image.ref.name"
	annotationName = "io.containerd.image.name"
)

// loadLayout lists the images of index.json.
func (s *Source) loadLayout(raw []byte) error {
	var index v1.IndexManifest
	if err := json.Unmarshal(raw, &index); err != nil {
		return fmt.Errorf("its index.json is damaged: %w", err)
	}
	platforms := 0
	for _, d := range index.Manifests {
		e := entry{open: func(ctx context.Context) (manifest, store, error) {
			m, err := s.files.manifest(ctx, d)
			return m, s.files, err
		}}
		if name := d.Annotations[annotationName]; name != "" {
			e.names = append(e.names, name)
		}
		if ref := d.Annotations[annotationRef]; strings.ContainsAny(ref, "/:") {
			e.names = append(e.names, ref)
		} else {
			e.tag = ref
		}
		if d.Platform != nil && e.tag == "" && len(e.names) == 0 {
			platforms++
		}
		s.entries = append(s.entries, e)
	}
	if len(index.Manifests) > 1 && platforms == len(index.Manifests) {
		digest, _, err := v1.SHA256(bytes.NewReader(raw))
		s.index = &manifest{digest, types.OCIImageIndex, raw}
		return err
	}
	return nil
}

// open returns the manifest or the index of a reference, or errNotHere.
func (s *Source) open(ctx context.Context, reference string) (manifest, store, error) {
	wanted := taskdef.NormalizeImage(reference)
	if s.reference != "" && taskdef.NormalizeImage(s.reference) != wanted {
		return manifest{}, nil, errNotHere
	}
	for _, e := range s.entries {
		if slices.ContainsFunc(e.names, func(name string) bool { return taskdef.NormalizeImage(name) == wanted }) {
			return e.open(ctx)
		}
	}
	if s.reference == "" {
		return manifest{}, nil, errNotHere
	}
	return s.openOnly(ctx, wanted)
}

// openOnly returns the image of a copy that the user has named: that of the reference's tag,
// or the only one.
func (s *Source) openOnly(ctx context.Context, wanted string) (manifest, store, error) {
	for _, e := range s.entries {
		if e.tag != "" && strings.HasSuffix(wanted, ":"+e.tag) {
			return e.open(ctx)
		}
	}
	switch {
	case s.index != nil:
		return *s.index, s.files, nil
	case len(s.entries) == 1:
		return s.entries[0].open(ctx)
	}
	return manifest{}, nil, fmt.Errorf("it has %d images, and none with this name or tag: copy one image",
		len(s.entries))
}

// files returns the content of a file of a copy, which is a manifest, a configuration or a
// list. The error has fs.ErrNotExist when the file is not there.
type files func(name string) ([]byte, error)

// directory reads files below a directory.
func directory(path string) files {
	root := os.DirFS(path)
	return func(name string) ([]byte, error) {
		f, err := root.Open(name)
		if err != nil {
			return nil, plain(err)
		}
		defer f.Close()
		return readLimited(f)
	}
}

func (f files) manifest(_ context.Context, of v1.Descriptor) (manifest, error) {
	raw, err := f.blob(of)
	return manifest{of.Digest, of.MediaType, raw}, err
}

func (f files) config(_ context.Context, of v1.Descriptor) ([]byte, error) { return f.blob(of) }

// blob reads an object and checks its digest.
func (f files) blob(of v1.Descriptor) ([]byte, error) {
	raw, err := f("blobs/" + of.Digest.Algorithm + "/" + of.Digest.Hex)
	if err != nil {
		return nil, fmt.Errorf("object %s: %w", of.Digest, err)
	}
	digest, _, err := v1.SHA256(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	return raw, checkDigest(of.Digest.String(), digest)
}

// plain returns an error without the path and the call, which are in the text around it.
func plain(err error) error {
	if inner, is := errors.AsType[*fs.PathError](err); is {
		return inner.Err
	}
	return err
}

package images

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// readArchive reads the small files of a tar file, which may be compressed by gzip: layers
// are larger than documents, and not needed.
func readArchive(ctx context.Context, file string) (read files, err error) {
	content, err := openArchive(ctx, file)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	defer func() { err = cmp.Or(unread(ctx), err) }()
	small := map[string][]byte{}
	buffered := bufio.NewReader(nil)
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("it is no tar file, or damaged: %w", err)
		}
		if header.Typeflag != tar.TypeReg || header.Size > maxDocument {
			continue
		}
		buffered.Reset(archive)
		if first, _ := buffered.Peek(1); !strings.Contains("{[ \t\r\n", string(first)) {
			continue // no JSON: a layer, or a file of what is no image
		}
		if small[path.Clean(header.Name)], err = io.ReadAll(buffered); err != nil {
			return nil, fmt.Errorf("%s: %w", header.Name, err)
		}
	}
	return func(name string) ([]byte, error) {
		data, found := small[path.Clean(name)]
		if !found {
			return nil, fs.ErrNotExist
		}
		return data, nil
	}, nil
}

// reading is a reader.
type reading func(part []byte) (int, error)

// Read implements io.Reader.
func (r reading) Read(part []byte) (int, error) { return r(part) }

// openArchive opens a tar file, compressed or not. Reading it ends with the context.
func openArchive(ctx context.Context, file string) (io.ReadCloser, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, plain(err)
	}
	buffered := bufio.NewReader(reading(func(part []byte) (int, error) {
		if err := context.Cause(ctx); err != nil {
			return 0, err
		}
		return f.Read(part)
	}))
	content := io.Reader(buffered)
	if magic, _ := buffered.Peek(2); string(magic) == "\x1f\x8b" {
		if content, err = gzip.NewReader(buffered); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return struct {
		io.Reader
		io.Closer
	}{content, f}, nil
}

// unread returns why a file was not read to its end, and nil when its content is the cause.
func unread(ctx context.Context) error {
	if late, is := errors.AsType[*timeoutError](context.Cause(ctx)); is {
		return fmt.Errorf("it was not read within %s: raise -timeout", late.after)
	}
	return context.Cause(ctx)
}

// saved is an image in the list of an archive.
type saved struct {
	// Config is the path of its configuration, and Layers those of its layers.
	Config   string
	RepoTags []string
	Layers   []string
}

// loadArchive lists the images of an archive without an OCI layout, as Docker wrote it before
// version 25.
func (s *Source) loadArchive(raw []byte) error {
	var list []saved
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("its manifest.json is damaged: %w", err)
	}
	for _, image := range list {
		s.entries = append(s.entries, entry{names: image.RepoTags,
			open: func(ctx context.Context) (manifest, store, error) { return s.openSaved(ctx, image) }})
	}
	return nil
}

// openSaved returns the image of an archive. Such an archive has no manifest, so this makes
// the one that describes its configuration and its layers.
func (s *Source) openSaved(ctx context.Context, image saved) (manifest, store, error) {
	config, err := s.files(image.Config)
	if err != nil {
		return manifest{}, nil, fmt.Errorf("configuration %s: %w", image.Config, err)
	}
	layers, err := hashFiles(ctx, s.path)
	if err != nil {
		return manifest{}, nil, err
	}
	made := v1.Manifest{SchemaVersion: 2, MediaType: types.DockerManifestSchema2,
		Config: v1.Descriptor{MediaType: types.DockerConfigJSON}}
	if made.Config.Digest, made.Config.Size, err = v1.SHA256(bytes.NewReader(config)); err != nil {
		return manifest{}, nil, err
	}
	for _, name := range image.Layers {
		layer, found := layers[path.Clean(name)]
		if !found {
			return manifest{}, nil, fmt.Errorf("layer %s: %w", name, fs.ErrNotExist)
		}
		made.Layers = append(made.Layers, layer)
	}
	raw, err := json.Marshal(made)
	if err != nil {
		return manifest{}, nil, err
	}
	digest, _, err := v1.SHA256(bytes.NewReader(raw))
	return manifest{digest, made.MediaType, raw}, onlyConfig(config), err
}

// hashFiles returns the files of a tar file as layers, by their paths. A link is the file that
// it names.
func hashFiles(ctx context.Context, file string) (hashed map[string]v1.Descriptor, err error) {
	content, err := openArchive(ctx, file)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	defer func() { err = cmp.Or(unread(ctx), err) }()
	hashed, links := map[string]v1.Descriptor{}, map[string]string{}
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		name := path.Clean(header.Name)
		switch header.Typeflag {
		case tar.TypeReg:
			layer := v1.Descriptor{MediaType: types.DockerLayer}
			if layer.Digest, layer.Size, err = v1.SHA256(archive); err != nil {
				return nil, err
			}
			hashed[name] = layer
		case tar.TypeSymlink:
			links[name] = path.Join(path.Dir(name), header.Linkname)
		case tar.TypeLink:
			links[name] = path.Clean(header.Linkname)
		}
	}
	for name, target := range links {
		if layer, found := hashed[target]; found {
			hashed[name] = layer
		}
	}
	return hashed, nil
}

// onlyConfig is the store of an image whose manifest was made from an archive.
type onlyConfig []byte

func (c onlyConfig) manifest(context.Context, v1.Descriptor) (manifest, error) {
	return manifest{}, fs.ErrNotExist // an archive has no index
}

func (c onlyConfig) config(context.Context, v1.Descriptor) ([]byte, error) { return c, nil }

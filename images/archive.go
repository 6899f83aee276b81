package images

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// readArchive reads the small files of a tar file, which may be compressed by gzip: layers
// are larger than documents, and not needed.
func readArchive(file string) (files, error) {
	content, err := openArchive(file)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	small := map[string][]byte{}
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
		if small[path.Clean(header.Name)], err = io.ReadAll(archive); err != nil {
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

// openArchive opens a tar file, compressed or not.
func openArchive(file string) (io.ReadCloser, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, plain(err)
	}
	buffered := bufio.NewReader(f)
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

// loadArchive lists the images of an archive without an OCI layout, as Docker wrote it before
// version 25.
func (s *Source) loadArchive(raw []byte) error {
	var list tarball.Manifest
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("its manifest.json is damaged: %w", err)
	}
	for _, saved := range list {
		s.entries = append(s.entries, entry{names: saved.RepoTags, open: func() (manifest, store, error) {
			return openSaved(s.path, saved.RepoTags)
		}})
	}
	return nil
}

// openSaved returns the image of an archive. Such an archive has no manifest, so its digest
// is computed: that of the manifest which a push of the archive makes.
func openSaved(file string, tags []string) (manifest, store, error) {
	var tag *name.Tag
	if len(tags) > 0 {
		parsed, err := name.NewTag(tags[0])
		if err != nil {
			return manifest{}, nil, err
		}
		tag = &parsed
	}
	image, err := tarball.Image(func() (io.ReadCloser, error) { return openArchive(file) }, tag)
	if err != nil {
		return manifest{}, nil, err
	}
	raw, err := image.RawManifest()
	if err != nil {
		return manifest{}, nil, err
	}
	mediaType, err := image.MediaType()
	if err != nil {
		return manifest{}, nil, err
	}
	digest, err := image.Digest()
	return manifest{digest, mediaType, raw}, saved{image}, err
}

// saved is the store of an image in an archive.
type saved struct{ image v1.Image }

func (s saved) manifest(context.Context, v1.Descriptor) (manifest, error) {
	return manifest{}, fs.ErrNotExist // an archive has no index
}

func (s saved) config(context.Context, v1.Descriptor) ([]byte, error) { return s.image.RawConfigFile() }

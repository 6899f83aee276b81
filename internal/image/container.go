package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"github.com/distribution/reference"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
)

// labels returns the image's labels.
func (o *options) labels() map[string]string {
	return map[string]string{
		specs.AnnotationTitle:       "consul-ecs",
		specs.AnnotationDescription: "Puts an Amazon ECS task into a Consul service mesh and takes it out again",
		specs.AnnotationVersion:     o.version,
		specs.AnnotationRevision:    o.revision,
		specs.AnnotationCreated:     o.timestamp(),
		specs.AnnotationSource:      source,
		specs.AnnotationLicenses:    "Apache-2.0",
	}
}

// image returns the image of one architecture, whose only layer is the tar file rootfs. The Dockerfile has the same
// configuration.
func (o *options) image(arch string, rootfs []byte) (v1.Image, error) {
	layer, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(rootfs)), nil },
		tarball.WithCompressedCaching,
		tarball.WithCompressionLevel(gzip.BestCompression),
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	created := v1.Time{Time: o.created}
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		Architecture: arch, OS: "linux", Created: created, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User:       "5996:5996",
			Entrypoint: []string{"/bin/consul-ecs"},
			WorkingDir: "/",
			// As builders set it.
			Env:     []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
			Volumes: map[string]struct{}{"/consul": {}}, // which belongs to the user
			Labels:  o.labels(),
		},
	})
	if err != nil {
		return nil, err
	}
	img, err = mutate.Append(img, mutate.Addendum{
		Layer: layer, MediaType: types.OCILayer,
		History: v1.History{Created: created, CreatedBy: "consul-ecs/internal/image"},
	})
	if err != nil {
		return nil, err
	}
	return mutate.ConfigMediaType(mutate.MediaType(img, types.OCIManifestSchema1), types.OCIConfigJSON), nil
}

// index returns the manifest list of images.
func (o *options) index(images []v1.Image) (v1.ImageIndex, error) {
	var index v1.ImageIndex = empty.Index
	for _, img := range images {
		config, err := img.ConfigFile()
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: config.Platform()},
		})
	}
	return mutate.Annotations(index, o.labels()).(v1.ImageIndex), nil
}

// archive returns a tar file that is both an OCI image layout and an archive for docker load. The layout has top, an
// image or the index of all, under the tag; docker load takes each image under the tag of its architecture.
func (o *options) archive(top mutate.Appendable, tag string, images []v1.Image) ([]byte, error) {
	name, err := reference.ParseNormalizedNamed(o.name + ":" + tag)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "consul-ecs-image-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	annotations := map[string]string{specs.AnnotationRefName: tag, "io.containerd.image.name": name.String()}
	if _, err := layout.Write(dir, mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{Add: top, Descriptor: v1.Descriptor{Annotations: annotations}})); err != nil {
		return nil, err
	}
	var manifest tarball.Manifest
	for _, img := range images {
		config, err := img.ConfigFile()
		if err != nil {
			return nil, err
		}
		m, err := img.Manifest()
		if err != nil {
			return nil, err
		}
		d := tarball.Descriptor{
			Config: blob(m.Config), RepoTags: []string{o.name + ":" + o.tag(config.Architecture)},
		}
		for _, layer := range m.Layers {
			d.Layers = append(d.Layers, blob(layer))
		}
		manifest = append(manifest, d)
	}
	data, err := json.Marshal(manifest)
	if err != nil {
		return nil, err
	}
	files := []entry{{path: "manifest.json", mode: 0o644, data: data}}
	if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		files = append(files, entry{path: path[len(dir)+1:], mode: 0o644, data: data})
		return err
	}); err != nil {
		return nil, err
	}
	return o.tar(files)
}

// blob returns the file of a blob in an OCI image layout.
func blob(d v1.Descriptor) string { return "blobs/" + d.Digest.Algorithm + "/" + d.Digest.Hex }

package images

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/meshtask/consul-ecs/taskdef"
)

// manifest is a manifest or an index.
type manifest struct {
	digest    v1.Hash
	mediaType types.MediaType
	raw       []byte
}

// kind returns the type of a manifest: what its registry states, or else what it states itself.
func (m manifest) kind() types.MediaType {
	stated, _, _ := strings.Cut(string(m.mediaType), ";")
	kind := types.MediaType(stated)
	if kind.IsIndex() || kind.IsImage() || kind.IsSchema1() {
		return kind
	}
	var own struct{ MediaType types.MediaType }
	if json.Unmarshal(m.raw, &own) == nil && own.MediaType != "" {
		return own.MediaType
	}
	return kind
}

// store has the manifests and configurations of one repository, layout or archive. An error
// with fs.ErrNotExist means that a copy was made without the object.
type store interface {
	manifest(ctx context.Context, of v1.Descriptor) (manifest, error)
	config(ctx context.Context, of v1.Descriptor) ([]byte, error)
}

// maxDocument bounds a manifest and a configuration, as registries do.
const maxDocument = 4 << 20

// resolve reads what an image is on all platforms that can run a task of the mesh.
func resolve(ctx context.Context, root manifest, from store) (taskdef.LockedImage, error) {
	image := taskdef.LockedImage{Digest: root.digest.String(), Platforms: map[string]taskdef.ImageConfig{}}
	others := map[string]bool{}
	if err := readPlatforms(ctx, root, from, image.Platforms, others); err != nil {
		return image, err
	}
	if len(image.Platforms) == 0 {
		return image, noPlatform(slices.Sorted(maps.Keys(others)))
	}
	return image, nil
}

// noPlatform returns the error of an image that no task of the mesh can run.
func noPlatform(others []string) error {
	if len(others) == 0 {
		return errors.New("it has no image of any platform: push it again")
	}
	return fmt.Errorf("it is for %s only: a task of the mesh needs linux/amd64 or linux/arm64",
		strings.Join(others, ", "))
}

// readPlatforms adds the platforms of a manifest or an index, and the names of those that no
// task of the mesh has.
func readPlatforms(ctx context.Context, m manifest, from store, found map[string]taskdef.ImageConfig,
	others map[string]bool) error {
	switch kind := m.kind(); {
	case kind.IsIndex():
		return readIndex(ctx, m, from, found, others)
	case kind.IsImage():
		return readImage(ctx, m, from, found, others)
	case kind.IsSchema1():
		return errors.New("its manifest has the old schema 1, which ECS does not pull any more: " +
			"push it again with a current Docker")
	}
	return fmt.Errorf("it is no container image: its manifest has the type %q", m.mediaType)
}

// readIndex reads the images of an index that a task may run.
func readIndex(ctx context.Context, m manifest, from store, found map[string]taskdef.ImageConfig,
	others map[string]bool) error {
	index, err := v1.ParseIndexManifest(bytes.NewReader(m.raw))
	if err != nil {
		return fmt.Errorf("its index is damaged: %w", err)
	}
	for _, d := range index.Manifests {
		if platform := d.Platform; platform != nil && !d.MediaType.IsIndex() {
			if platform.OS == "unknown" { // an attestation
				continue
			}
			name, supported := platformName(*platform)
			if _, again := found[name]; again || !supported {
				others[name] = true
				continue
			}
		}
		if !d.MediaType.IsImage() && !d.MediaType.IsIndex() {
			continue // another artifact
		}
		child, err := from.manifest(ctx, d)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a copy of some platforms
		}
		if err != nil {
			return err
		}
		err = readPlatforms(ctx, child, from, found, others)
		if _, is := errors.AsType[*artifactError](err); err != nil && !is {
			return err
		}
	}
	return nil
}

// artifactError is about a manifest of something else than an image, such as a chart. An index
// may have it beside images.
type artifactError struct{ config types.MediaType }

// Error names the type of what the manifest has as configuration.
func (e *artifactError) Error() string {
	return fmt.Sprintf("it is no container image: its configuration of type %q names no platform", e.config)
}

// readImage reads the configuration of a manifest.
func readImage(ctx context.Context, m manifest, from store, found map[string]taskdef.ImageConfig,
	others map[string]bool) error {
	parsed, err := v1.ParseManifest(bytes.NewReader(m.raw))
	if err != nil {
		return fmt.Errorf("its manifest is damaged: %w", err)
	}
	if parsed.Config.Digest == (v1.Hash{}) {
		return &artifactError{parsed.Config.MediaType}
	}
	raw, err := from.config(ctx, parsed.Config)
	if err != nil {
		return err
	}
	file, err := v1.ParseConfigFile(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("its configuration is damaged: %w", err)
	}
	if file.OS == "" || file.Architecture == "" {
		return &artifactError{parsed.Config.MediaType}
	}
	name, supported := platformName(v1.Platform{OS: file.OS, Architecture: file.Architecture, Variant: file.Variant})
	if _, again := found[name]; again || !supported {
		others[name] = true
		return nil
	}
	found[name] = configOf(m.digest, file.Config)
	return nil
}

// platformName returns the name of a platform, and whether a task of the mesh can have it. The
// usual variants have no name of their own.
func platformName(p v1.Platform) (name string, supported bool) {
	if p.OS == "linux" && (p.Architecture == "amd64" && p.Variant == "v1" ||
		p.Architecture == "arm64" && p.Variant == "v8") {
		p.Variant = ""
	}
	name = v1.Platform{OS: p.OS, Architecture: p.Architecture, Variant: p.Variant}.String()
	return name, name == "linux/amd64" || name == "linux/arm64"
}

// configOf returns what the lock has of a configuration. What is empty is nil.
func configOf(digest v1.Hash, c v1.Config) taskdef.ImageConfig {
	config := taskdef.ImageConfig{
		Digest:     digest.String(),
		Entrypoint: slices.Clip(append([]string(nil), c.Entrypoint...)),
		Cmd:        slices.Clip(append([]string(nil), c.Cmd...)),
		User:       c.User,
		StopSignal: c.StopSignal,
		WorkingDir: c.WorkingDir,
		Volumes:    slices.Sorted(maps.Keys(c.Volumes)),
	}
	if h := c.Healthcheck; h != nil {
		config.Healthcheck = &taskdef.ImageHealth{
			Test:        h.Test,
			Interval:    durationText(h.Interval),
			Timeout:     durationText(h.Timeout),
			StartPeriod: durationText(h.StartPeriod),
			Retries:     h.Retries,
		}
	}
	return config
}

// durationText returns empty for what the image leaves to Docker.
func durationText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

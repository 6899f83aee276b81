package taskdef

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// ImageLockVersion is the version of the lock's format that this package reads and writes.
const ImageLockVersion = 1

// ImageLock is a file of image configurations as their registries had them at one time. It
// makes decisions about images repeatable, without a network.
type ImageLock struct {
	// Version is ImageLockVersion.
	Version int `json:"version"`
	// Images are by reference, as definitions write it.
	Images map[string]LockedImage `json:"images"`
}

// LockedImage is an image, for all its platforms.
type LockedImage struct {
	// Digest is that of the index, or of the manifest when the image has no index: what a
	// reference by digest has to name.
	Digest string `json:"digest"`
	// Platforms are by name, such as linux/amd64 or linux/arm/v7.
	Platforms map[string]ImageConfig `json:"platforms"`
}

// ImageConfig is the part of an image's configuration that decides what a container of it
// executes, and how it is stopped. Absent members are empty.
type ImageConfig struct {
	// Digest is that of the platform's manifest.
	Digest string `json:"digest"`
	// Entrypoint and Cmd are lists of arguments. A shell form has its shell in them.
	Entrypoint []string `json:"entrypoint,omitempty"`
	Cmd        []string `json:"cmd,omitempty"`
	// User is a name or number, with or without ":" and a group; empty is root.
	User string `json:"user,omitempty"`
	// StopSignal is a name or number, as the image has it; empty is SIGTERM.
	StopSignal string `json:"stopSignal,omitempty"`
	WorkingDir string `json:"workingDir,omitempty"`
	// Volumes are paths in the container, sorted.
	Volumes     []string     `json:"volumes,omitempty"`
	Healthcheck *ImageHealth `json:"healthcheck,omitempty"`
}

// ImageHealth is an image's HEALTHCHECK. ECS does not run it: only the health check of a
// container definition counts.
type ImageHealth struct {
	// Test begins with CMD, CMD-SHELL or NONE.
	Test []string `json:"test,omitempty"`
	// Interval, Timeout and StartPeriod are durations, such as 30s; empty is Docker's default.
	Interval    string `json:"interval,omitempty"`
	Timeout     string `json:"timeout,omitempty"`
	StartPeriod string `json:"startPeriod,omitempty"`
	// Retries is 0 for Docker's default.
	Retries int `json:"retries,omitempty"`
}

// Encode returns the lock as JSON: the same bytes for the same content, sorted, with a line
// break at the end.
func (l *ImageLock) Encode() []byte {
	var doc bytes.Buffer
	enc := json.NewEncoder(&doc)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(l) // strings, lists and numbers are always JSON
	return doc.Bytes()
}

// Find returns the locked image of a reference. The spelling does not matter: "nginx" finds
// "docker.io/library/nginx:latest". A reference by digest finds the image of the same
// repository that was locked with this digest, so that a pinned definition needs no other lock.
// l may be nil.
func (l *ImageLock) Find(reference string) (LockedImage, bool) {
	if l == nil {
		return LockedImage{}, false
	}
	if image, exact := l.Images[reference]; exact {
		return image, true
	}
	wanted := NormalizeImage(reference)
	for _, key := range slices.Sorted(maps.Keys(l.Images)) {
		image := l.Images[key]
		repository, _, _ := splitImage(key)
		if NormalizeImage(key) == wanted || repository+"@"+image.Digest == wanted {
			return image, true
		}
	}
	return LockedImage{}, false
}

// Config returns the configuration for a task's cpuArchitecture: X86_64 or ARM64, on Linux.
func (i LockedImage) Config(architecture string) (ImageConfig, bool) {
	config, found := i.Platforms[linuxPlatform(architecture)]
	return config, found
}

// Architectures returns those of a task that the image has, sorted: ARM64, X86_64.
func (i LockedImage) Architectures() []string {
	var found []string
	for _, architecture := range []string{"ARM64", "X86_64"} {
		if _, has := i.Config(architecture); has {
			found = append(found, architecture)
		}
	}
	return found
}

// PlatformNames returns the names of the image's platforms, sorted.
func (i LockedImage) PlatformNames() []string { return slices.Sorted(maps.Keys(i.Platforms)) }

// linuxPlatform returns the platform of a task's architecture.
func linuxPlatform(architecture string) string {
	switch architecture {
	case "X86_64":
		return "linux/amd64"
	case "ARM64":
		return "linux/arm64"
	}
	return ""
}

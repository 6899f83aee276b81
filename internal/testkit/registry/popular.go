package registry

import (
	_ "embed"
	"encoding/json"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Popular is an image as its Dockerfile publishes it.
type Popular struct {
	// Reference is where users find it.
	Reference  string   `json:"reference"`
	Platforms  []string `json:"platforms"`
	Entrypoint []string `json:"entrypoint"`
	Cmd        []string `json:"cmd"`
	User       string   `json:"user"`
	StopSignal string   `json:"stopSignal"`
	WorkingDir string   `json:"workingDir"`
	Volumes    []string `json:"volumes"`
	// UID is the user and group of a User with a name, for an image without /etc/passwd.
	UID string `json:"uid"`
	// Command is what its documentation gives as command of a container; it may be empty.
	Command []string `json:"command"`
	// Init reports that the program has to be process 1 of the container.
	Init bool `json:"init"`
}

//go:embed popular.json
var popular []byte

// PopularImages returns images that many tasks have, with what is known of them in public.
func PopularImages(t testing.TB) []Popular {
	t.Helper()
	var images []Popular
	if err := json.Unmarshal(popular, &images); err != nil {
		t.Fatal(err)
	}
	return images
}

// Image returns a small image with this configuration, for all platforms.
func (p Popular) Image(t testing.TB) remote.Taggable {
	config := v1.Config{
		Entrypoint: p.Entrypoint, Cmd: p.Cmd, User: p.User, StopSignal: p.StopSignal, WorkingDir: p.WorkingDir,
		Volumes: map[string]struct{}{},
	}
	for _, path := range p.Volumes {
		config.Volumes[path] = struct{}{}
	}
	var images []v1.Image
	for _, platform := range p.Platforms {
		images = append(images, Image(t, platform, config))
	}
	return Index(t, images...)
}

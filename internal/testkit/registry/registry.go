// Package registry runs a registry of container images for a test, and makes small images for
// it: configurations with a layer that no reader needs.
//
// Never does: a network other than the loopback interface. Start reading at: Start.
package registry

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Registry is a registry on the loopback interface.
type Registry struct {
	// Host is its address, the first part of its references.
	Host string

	mutex    sync.Mutex
	requests []string
	answer   func(http.ResponseWriter, *http.Request) bool
	// transport reaches it.
	transport http.RoundTripper
}

// Start starts a registry without TLS that ends with the test.
func Start(t testing.TB) *Registry {
	r := &Registry{transport: http.DefaultTransport}
	server := httptest.NewServer(r.handler())
	t.Cleanup(server.Close)
	r.Host = strings.TrimPrefix(server.URL, "http://")
	return r
}

// StartTLS starts a registry with the certificate of a test server. The transport trusts it.
func StartTLS(t testing.TB) (*Registry, http.RoundTripper) {
	r := &Registry{}
	server := httptest.NewTLSServer(r.handler())
	t.Cleanup(server.Close)
	r.Host, r.transport = strings.TrimPrefix(server.URL, "https://"), server.Client().Transport
	return r, r.transport
}

// handler records what is read, and answers.
func (r *Registry) handler() http.Handler {
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mutex.Lock()
		answer := r.answer
		if req.Method == http.MethodGet {
			r.requests = append(r.requests, req.URL.Path)
		}
		r.mutex.Unlock()
		if answer == nil || !answer(w, req) {
			images.ServeHTTP(w, req)
		}
	})
}

// Answer sets a function that answers in place of the registry where it returns true.
func (r *Registry) Answer(answer func(http.ResponseWriter, *http.Request) bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.answer = answer
}

// Requests returns the paths that were read since the last call.
func (r *Registry) Requests() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	requests := r.requests
	r.requests = nil
	return requests
}

// Push stores an image or an index, and returns its reference: the host, and the path with
// the tag.
func (r *Registry) Push(t testing.TB, path string, image remote.Taggable) string {
	t.Helper()
	reference := r.Host + "/" + path
	ref, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	switch image := image.(type) {
	case v1.ImageIndex:
		err = remote.WriteIndex(ref, image, remote.WithTransport(r.transport))
	case v1.Image:
		err = remote.Write(ref, image, remote.WithTransport(r.transport))
	}
	if err != nil {
		t.Fatal(err)
	}
	return reference
}

// Image returns an image of a platform, such as linux/amd64, with a configuration and a small
// layer.
func Image(t testing.TB, platform string, config v1.Config) v1.Image {
	t.Helper()
	layer, err := random.Layer(100, types.DockerLayer)
	if err != nil {
		t.Fatal(err)
	}
	p, err := v1.ParsePlatform(platform)
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Variant, file.OSVersion = p.OS, p.Architecture, p.Variant, p.OSVersion
	file.Config = config
	image, err = mutate.ConfigFile(image, file)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// Index returns the index of some images. It names the platforms of their configurations.
func Index(t testing.TB, images ...v1.Image) v1.ImageIndex {
	t.Helper()
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, image := range images {
		file, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		index = mutate.AppendManifests(index,
			mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: file.Platform()}})
	}
	return index
}

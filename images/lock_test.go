package images_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/meshtask/consul-ecs/images"
	"github.com/meshtask/consul-ecs/internal/testkit/registry"
	"github.com/meshtask/consul-ecs/taskdef"
)

// keychain has the same credentials for every registry.
type keychain struct{ authn.Authenticator }

func (k keychain) Resolve(authn.Resource) (authn.Authenticator, error) { return k.Authenticator, nil }

// options returns those of most tests.
func options() images.Options {
	return images.Options{Timeout: 30 * time.Second, Keychain: keychain{authn.Anonymous},
		Transport: remote.DefaultTransport}
}

// lockOf locks references, and returns the lock and the lines of the error.
func lockOf(t *testing.T, o images.Options, references ...string) (*taskdef.ImageLock, []string) {
	t.Helper()
	var wanted []images.Wanted
	for _, reference := range references {
		wanted = append(wanted, images.Wanted{Reference: reference})
	}
	lock, err := images.Lock(t.Context(), wanted, o)
	if err != nil {
		return lock, strings.Split(err.Error(), "\n")
	}
	return lock, nil
}

// mustLock locks one reference.
func mustLock(t *testing.T, o images.Options, reference string) taskdef.LockedImage {
	t.Helper()
	lock, failures := lockOf(t, o, reference)
	if failures != nil {
		t.Fatal(failures)
	}
	return lock.Images[reference]
}

// digestOf returns the digest of an image or an index.
func digestOf(t *testing.T, image interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// web returns a configuration with everything that a lock has.
func web() v1.Config {
	return v1.Config{
		Entrypoint: []string{"/docker-entrypoint.sh"}, Cmd: []string{"nginx", "-g", "daemon off;"}, User: "101",
		StopSignal: "SIGQUIT",
		WorkingDir: "/srv", Volumes: map[string]struct{}{"/b": {}, "/a": {}},
		Healthcheck: &v1.HealthConfig{
			Test: []string{"CMD", "true"}, Interval: 30 * time.Second, StartPeriod: time.Minute, Retries: 3,
		},
	}
}

// lockedWeb returns web in a lock.
func lockedWeb(digest string) taskdef.ImageConfig {
	return taskdef.ImageConfig{
		Digest: digest, Entrypoint: []string{"/docker-entrypoint.sh"}, Cmd: []string{"nginx", "-g", "daemon off;"},
		User:       "101",
		StopSignal: "SIGQUIT", WorkingDir: "/srv", Volumes: []string{"/a", "/b"},
		Healthcheck: &taskdef.ImageHealth{
			Test: []string{"CMD", "true"}, Interval: "30s", StartPeriod: "1m0s", Retries: 3,
		},
	}
}

func TestLockReadsTheConfigurationOfAnImage(t *testing.T) {
	t.Parallel()
	r := registry.Start(t)
	image := registry.Image(t, "linux/amd64", web())
	digest := digestOf(t, image)
	want := taskdef.LockedImage{Digest: digest,
		Platforms: map[string]taskdef.ImageConfig{"linux/amd64": lockedWeb(digest)}}
	if diff := cmp.Diff(want, mustLock(t, options(), r.Push(t, "web:1", image))); diff != "" {
		t.Error(diff)
	}
}

func TestLockReadsBothArchitecturesOfAnIndexAndNoOther(t *testing.T) {
	t.Parallel()
	r := registry.Start(t)
	amd, arm := registry.Image(t, "linux/amd64", web()),
		registry.Image(t, "linux/arm64/v8", v1.Config{Cmd: []string{"arm"}})
	others := []v1.Image{
		registry.Image(t, "linux/arm/v7", v1.Config{}), registry.Image(t, "linux/amd64/v3", v1.Config{}),
		registry.Image(t, "windows/amd64:10.0.20348.1", v1.Config{}), registry.Image(t, "unknown/unknown", v1.Config{}),
	}
	index := registry.Index(t, append([]v1.Image{amd, arm}, others...)...)
	reference := r.Push(t, "web:1", index)
	r.Requests()
	want := taskdef.LockedImage{Digest: digestOf(t, index), Platforms: map[string]taskdef.ImageConfig{
		"linux/amd64": lockedWeb(digestOf(t, amd)),
		"linux/arm64": {Digest: digestOf(t, arm), Cmd: []string{"arm"}},
	}}
	if diff := cmp.Diff(want, mustLock(t, options(), reference)); diff != "" {
		t.Error(diff)
	}
	requests := r.Requests()
	for _, other := range others {
		if slices.Contains(requests, "/v2/web/manifests/"+digestOf(t, other)) {
			t.Errorf("a manifest that no task needs was read: registries limit reads")
		}
	}
}

func TestLockReadsNoLayer(t *testing.T) {
	t.Parallel()
	r := registry.Start(t)
	image := registry.Image(t, "linux/amd64", web())
	reference := r.Push(t, "web:1", image)
	r.Requests()
	mustLock(t, options(), reference)
	m, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/v2/", "/v2/web/manifests/1", "/v2/web/blobs/" + m.Config.Digest.String()}
	if diff := cmp.Diff(want, r.Requests()); diff != "" {
		t.Error(diff)
	}
}

func TestLockReadsAnImageOfAZstdLayer(t *testing.T) {
	t.Parallel()
	r := registry.Start(t)
	image, err := mutate.AppendLayers(registry.Image(t, "linux/amd64", web()),
		static.NewLayer([]byte("zstd"), types.OCILayerZStd))
	if err != nil {
		t.Fatal(err)
	}
	if got := mustLock(t, options(), r.Push(t, "web:1", image)); got.Platforms["linux/amd64"].StopSignal != "SIGQUIT" {
		t.Errorf("%+v", got)
	}
}

func TestLockReadsAnIndexInAnIndexAndOneWithoutPlatforms(t *testing.T) {
	t.Parallel()
	r := registry.Start(t)
	inner := mutate.AppendManifests(registry.Index(t),
		mutate.IndexAddendum{Add: registry.Image(t, "linux/arm64", web())})
	outer := mutate.AppendManifests(registry.Index(t, registry.Image(t, "linux/amd64", web())),
		mutate.IndexAddendum{Add: inner})
	got := mustLock(t, options(), r.Push(t, "web:1", outer))
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, got.PlatformNames()); diff != "" {
		t.Error(diff)
	}
}

func TestLockReadsAManifestWhoseTypeTheRegistryDoesNotState(t *testing.T) {
	t.Parallel()
	for _, stated := range []string{"application/json", "application/vnd.oci.image.index.v1+json; charset=utf-8"} {
		r := registry.Start(t)
		index := registry.Index(t, registry.Image(t, "linux/amd64", web()))
		reference := r.Push(t, "web:1", index)
		raw, err := index.RawManifest()
		if err != nil {
			t.Fatal(err)
		}
		r.Answer(func(w http.ResponseWriter, req *http.Request) bool {
			if req.URL.Path != "/v2/web/manifests/1" {
				return false
			}
			w.Header().Set("Content-Type", stated)
			_, err := w.Write(raw)
			return err == nil
		})
		if got := mustLock(t, options(), reference); got.Digest != digestOf(t, index) {
			t.Errorf("%s: %+v", stated, got)
		}
	}
}

func TestLockSkipsAnArtifactInAnIndex(t *testing.T) {
	t.Parallel()
	r := registry.Start(t)
	signature := mutate.ConfigMediaType(empty.Image, "application/vnd.example.signature+json")
	index := mutate.AppendManifests(registry.Index(t, registry.Image(t, "linux/amd64", web())),
		mutate.IndexAddendum{Add: signature})
	got := mustLock(t, options(), r.Push(t, "web:1", index))
	if diff := cmp.Diff([]string{"linux/amd64"}, got.PlatformNames()); diff != "" {
		t.Error(diff)
	}
}

func TestLockReadsEachImageOnceAndKeepsEachSpelling(t *testing.T) {
	t.Parallel()
	r := registry.Start(t)
	reference := r.Push(t, "web:latest", registry.Image(t, "linux/amd64", web()))
	short := strings.TrimSuffix(reference, ":latest")
	r.Requests()
	lock, failures := lockOf(t, options(), reference, short, reference)
	if failures != nil {
		t.Fatal(failures)
	}
	if diff := cmp.Diff(lock.Images[reference], lock.Images[short]); diff != "" {
		t.Error(diff)
	}
	if requests := r.Requests(); len(requests) != 3 {
		t.Errorf("read %v", requests)
	}
}

func TestLockReadsAPinnedReference(t *testing.T) {
	t.Parallel()
	r := registry.Start(t)
	index := registry.Index(t, registry.Image(t, "linux/amd64", web()), registry.Image(t, "linux/arm64", web()))
	reference := taskdef.PinImage(r.Push(t, "web:1", index), digestOf(t, index))
	if got := mustLock(t, options(), reference); got.Digest != digestOf(t, index) {
		t.Errorf("%+v", got)
	}
}

func TestLockReadsFromARegistryWithTLS(t *testing.T) {
	t.Parallel()
	r, transport := registry.StartTLS(t)
	image := registry.Image(t, "linux/amd64", web())
	o := options()
	o.Transport = transport
	if got := mustLock(t, o, r.Push(t, "web:1", image)); got.Digest != digestOf(t, image) {
		t.Errorf("%+v", got)
	}
}

func TestLockLogsInWithTheUsersCredentials(t *testing.T) {
	t.Parallel()
	r := registry.Start(t)
	reference := r.Push(t, "private/web:1", registry.Image(t, "linux/amd64", web()))
	r.Answer(func(w http.ResponseWriter, req *http.Request) bool {
		if user, password, _ := req.BasicAuth(); user == "me" && password == "secret" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	_, failures := lockOf(t, options(), reference)
	want := fmt.Sprintf("image %s: %s refuses it (401 Unauthorized): log in with `docker login %s`, and check the "+
		"name: many registries refuse what does not exist", reference, r.Host, r.Host)
	if diff := cmp.Diff([]string{want}, failures); diff != "" {
		t.Error(diff)
	}
	o := options()
	o.Keychain = keychain{&authn.Basic{Username: "me", Password: "secret"}}
	if got := mustLock(t, o, reference); got.Platforms["linux/amd64"].User != "101" {
		t.Errorf("%+v", got)
	}
}

func TestLockChecksTheArchitectureOfEachTask(t *testing.T) {
	t.Parallel()
	r := registry.Start(t)
	reference := r.Push(t, "web:1", registry.Image(t, "linux/amd64", web()))
	_, err := images.Lock(t.Context(), []images.Wanted{
		{Reference: reference, Where: "a.json, container a", Architecture: "X86_64"},
		{Reference: reference, Where: "b.json, container b"},
		{Reference: reference, Where: "c.json, container c", Architecture: "ARM64"},
		{Reference: reference, Where: "d.json, container d", Architecture: "ARM64"},
	}, options())
	want := "image " + reference + " (c.json, container c): the task has cpuArchitecture ARM64, the image is for " +
		"linux/amd64: build it for both, or set runtimePlatform.cpuArchitecture"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestLockEndsWithItsContext(t *testing.T) {
	t.Parallel()
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	lock, err := images.Lock(ctx, []images.Wanted{{Reference: "web:1"}}, options())
	if !errors.Is(err, stopped) {
		t.Error(err)
	}
	if lock != nil {
		t.Error("a lock was returned")
	}
}

func TestReportNamesEachImageThatWasRead(t *testing.T) {
	t.Parallel()
	r := registry.Start(t)
	one, two := r.Push(t, "one:1", registry.Image(t, "linux/amd64", web())),
		r.Push(t, "two:1", registry.Image(t, "linux/amd64", web()))
	var reported []string
	o := options()
	o.Report = func(reference string, _ taskdef.LockedImage) { reported = append(reported, reference) }
	lockOf(t, o, one, two, r.Host+"/three:1")
	slices.Sort(reported)
	if diff := cmp.Diff([]string{one, two}, reported); diff != "" {
		t.Error(diff)
	}
}

package images_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit/registry"
	"github.com/meshtask/consul-ecs/taskdef"
)

func TestLockOfPopularImages(t *testing.T) {
	t.Parallel()
	r := registry.Start(t)
	references := map[string]registry.Popular{}
	for _, image := range registry.PopularImages(t) {
		references[r.Push(t, image.Reference, image.Image(t))] = image
	}
	lock, failures := lockOf(t, options(), slices.Sorted(maps.Keys(references))...)
	if failures != nil {
		t.Fatal(failures)
	}
	for reference, image := range references {
		for platform, config := range lock.Images[reference].Platforms {
			want := taskdef.ImageConfig{
				Digest: config.Digest, Entrypoint: image.Entrypoint, Cmd: image.Cmd, User: image.User,
				StopSignal: image.StopSignal, WorkingDir: image.WorkingDir, Volumes: image.Volumes,
			}
			if diff := cmp.Diff(want, config); diff != "" {
				t.Errorf("%s for %s: %s", image.Reference, platform, diff)
			}
		}
		if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"},
			lock.Images[reference].PlatformNames()); diff != "" {
			t.Errorf("%s: %s", image.Reference, diff)
		}
	}
}

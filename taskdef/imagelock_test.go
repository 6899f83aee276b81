package taskdef_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Digests of a lock in tests.
var (
	digestA = "sha256:" + strings.Repeat("a", 64)
	digestB = "sha256:" + strings.Repeat("b", 64)
	digestC = "sha256:" + strings.Repeat("c", 64)
)

// nginxLock returns a lock with an image of two platforms.
func nginxLock() *taskdef.ImageLock {
	return &taskdef.ImageLock{Version: 1, Images: map[string]taskdef.LockedImage{
		"nginx:1.27": {Digest: digestA, Platforms: map[string]taskdef.ImageConfig{
			"linux/amd64": {
				Digest: digestB, Entrypoint: []string{"/docker-entrypoint.sh"},
				Cmd:        []string{"nginx", "-g", "daemon off;"},
				StopSignal: "SIGQUIT", Volumes: []string{"/cache"}, User: "101:101", WorkingDir: "/srv",
				Healthcheck: &taskdef.ImageHealth{
					Test: []string{"CMD-SHELL", "curl -f localhost && true"}, Interval: "30s", Timeout: "5s",
					StartPeriod: "1m0s", Retries: 3,
				},
			},
			"linux/arm64": {Digest: digestC},
		}},
	}}
}

func TestImageLockIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	lock := nginxLock()
	read, err := taskdef.ParseImageLock(lock.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lock, read); diff != "" {
		t.Error(diff)
	}
}

func TestImageLockIsSortedText(t *testing.T) {
	t.Parallel()
	lock := &taskdef.ImageLock{Version: 1, Images: map[string]taskdef.LockedImage{
		"b": {
			Digest:    digestB,
			Platforms: map[string]taskdef.ImageConfig{"linux/amd64": {Digest: digestB, Cmd: []string{"a && b"}}},
		},
		"a": {Digest: digestA, Platforms: map[string]taskdef.ImageConfig{"linux/arm64": {Digest: digestA}}},
	}}
	want := `{
  "version": 1,
  "images": {
    "a": {
      "digest": "` + digestA + `",
      "platforms": {
        "linux/arm64": {
          "digest": "` + digestA + `"
        }
      }
    },
    "b": {
      "digest": "` + digestB + `",
      "platforms": {
        "linux/amd64": {
          "digest": "` + digestB + `",
          "cmd": [
            "a && b"
          ]
        }
      }
    }
  }
}
`
	if diff := cmp.Diff(want, string(lock.Encode())); diff != "" {
		t.Error(diff)
	}
}

func TestImageLockRefusesWhatItCannotTrust(t *testing.T) {
	t.Parallel()
	image := func(body string) string { return `{"version": 1, "images": {"web:1": ` + body + `}}` }
	platform := func(body string) string {
		return image(`{"digest": "` + digestA + `", "platforms": {"linux/amd64": ` + body + `}}`)
	}
	config := func(members string) string { return platform(`{"digest": "` + digestB + `", ` + members + `}`) }
	for name, c := range map[string]struct{ doc, want string }{
		"empty":      {" ", "line 1, column 1: the file is empty"},
		"cut off":    {`{"version": 1, "images": {`, "something is cut off"},
		"a list":     {`[]`, "$: want an object"},
		"no version": {`{"images": {}}`, "$.version: missing"},
		"later version": {
			`{"version": 2, "more": {}}`,
			"image lock of version 2: this program reads version 1; make it again with `consul-ecs images lock`",
		},
		"version as text":  {`{"version": "1", "images": {}}`, `image lock of version "1"`},
		"no images":        {`{"version": 1}`, "$.images: missing"},
		"images as a list": {`{"version": 1, "images": []}`, "$.images: want an object"},
		"key twice":        {`{"version": 1, "images": {}, "images": {}}`, "$.images: key given twice"},
		"image twice":      {`{"version": 1, "images": {"a": {}, "a": {}}}`, "$.images.a: key given twice"},
		"unknown key":      {`{"version": 1, "images": {}, "Images": {}}`, `$: unknown key "Images"`},
		"image null":       {image(`null`), `$.images["web:1"]: want an object`},
		"image unknown key": {
			image(`{"digest": "` + digestA + `", "platforms": {}, "tags": []}`),
			`$.images["web:1"]: unknown key "tags"`,
		},
		"no digest": {
			image(`{"platforms": {"linux/amd64": {"digest": "` + digestB + `"}}}`), `$.images["web:1"].digest: missing`,
		},
		"short digest": {
			image(`{"digest": "sha256:aa"}`), `$.images["web:1"].digest: want sha256: and 64 hexadecimal digits`,
		},
		"no platforms": {image(`{"digest": "` + digestA + `"}`), `$.images["web:1"].platforms: missing`},
		"empty platforms": {
			image(`{"digest": "` + digestA + `", "platforms": {}}`), `$.images["web:1"].platforms: empty`,
		},
		"platform name": {
			image(`{"digest": "` + digestA + `", "platforms": {"amd64": {}}}`),
			`platforms["amd64"]: want a platform such as linux/amd64`,
		},
		"no manifest digest": {platform(`{}`), `$.images["web:1"].platforms["linux/amd64"].digest: missing`},
		"entrypoint text":    {config(`"entrypoint": "/init"`), `.entrypoint: want a list of strings`},
		"cmd number":         {config(`"cmd": ["a", 1]`), `.cmd[1]: want a string`},
		"user number":        {config(`"user": 1000`), `.user: want a string`},
		"healthcheck":        {config(`"healthcheck": []`), `.healthcheck: want an object`},
		"interval": {
			config(`"healthcheck": {"interval": "soon"}`), `.healthcheck.interval: want a duration such as 30s`,
		},
		"retries":         {config(`"healthcheck": {"retries": "3"}`), `.healthcheck.retries: want a number`},
		"byte order mark": {"\xef\xbb\xbf{}", "byte order mark"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := taskdef.ParseImageLock([]byte(c.doc))
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			if !strings.Contains(err.Error(), "make it again with `consul-ecs images lock`") {
				t.Errorf("%v names no cure", err)
			}
		})
	}
}

func TestImageLockNamesAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := taskdef.ParseImageLock([]byte(`{"version": 1, "images": {"a": {}, "b": {}}}`))
	want := "damaged image lock, make it again with `consul-ecs images lock`:\n" +
		"  $.images[\"a\"].digest: missing\n  $.images[\"a\"].platforms: missing\n" +
		"  $.images[\"b\"].digest: missing\n  $.images[\"b\"].platforms: missing"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestImageLockFindsAnImageByAnySpelling(t *testing.T) {
	t.Parallel()
	entry := nginxLock().Images["nginx:1.27"]
	for _, c := range []struct {
		key, reference string
		found          bool
	}{
		{"nginx", "nginx:latest", true},
		{"nginx", "docker.io/library/nginx:latest", true},
		{"docker.io/library/nginx", "nginx", true},
		{"index.docker.io/library/nginx", "nginx", true},
		{"bitnami/redis:7", "docker.io/bitnami/redis:7", true},
		{"localhost:5000/web", "localhost:5000/web:latest", true},
		{"localhost/web:1", "localhost/web:1", true},
		{"nginx:1.27", "nginx", false},
		{"nginx", "quay.io/library/nginx", false},
		{"localhost:5000/web", "localhost:5001/web", false},
		{"nginx:1.27", "nginx:1.27@" + digestA, true},
		{"nginx:1.27", "nginx@" + digestA, true},
		{"nginx:1.27@" + digestA, "nginx@" + digestA, true},
		{"nginx:1.27", "nginx:1.27@" + digestC, false},
		{"nginx:1.27", "web@" + digestA, false},
	} {
		lock := &taskdef.ImageLock{Images: map[string]taskdef.LockedImage{c.key: entry}}
		if _, found := lock.Find(c.reference); found != c.found {
			t.Errorf("%s in a lock of %s: found %v", c.reference, c.key, found)
		}
	}
}

func TestNoImageLockFindsNothing(t *testing.T) {
	t.Parallel()
	var lock *taskdef.ImageLock
	if _, found := lock.Find("nginx"); found {
		t.Error("found in no lock")
	}
}

func TestPinImageKeepsTheNameAndTag(t *testing.T) {
	t.Parallel()
	for reference, want := range map[string]string{
		"nginx:1.27":                      "nginx:1.27@" + digestA,
		"localhost:5000/web":              "localhost:5000/web@" + digestA,
		"nginx:1.27@" + digestB:           "nginx:1.27@" + digestA,
		"quay.io/keycloak/keycloak:26.0":  "quay.io/keycloak/keycloak:26.0@" + digestA,
		"public.ecr.aws/nginx/nginx:1.27": "public.ecr.aws/nginx/nginx:1.27@" + digestA,
	} {
		if got := taskdef.PinImage(reference, digestA); got != want {
			t.Errorf("%s: %s, want %s", reference, got, want)
		}
	}
}

func TestLockedImageHasTheArchitecturesOfATask(t *testing.T) {
	t.Parallel()
	image := nginxLock().Images["nginx:1.27"]
	if diff := cmp.Diff([]string{"ARM64", "X86_64"}, image.Architectures()); diff != "" {
		t.Error(diff)
	}
	if config, _ := image.Config("X86_64"); config.Digest != digestB {
		t.Errorf("X86_64 has %s", config.Digest)
	}
	if config, _ := image.Config("ARM64"); config.Digest != digestC {
		t.Errorf("ARM64 has %s", config.Digest)
	}
	if _, found := image.Config(""); found {
		t.Error("an architecture without a name was found")
	}
	delete(image.Platforms, "linux/arm64")
	image.Platforms["windows/amd64:10.0.20348.1"] = taskdef.ImageConfig{}
	if diff := cmp.Diff([]string{"X86_64"}, image.Architectures()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"linux/amd64", "windows/amd64:10.0.20348.1"}, image.PlatformNames()); diff != "" {
		t.Error(diff)
	}
}

func TestDiffImagesNamesEachChange(t *testing.T) {
	t.Parallel()
	before, after := nginxLock(), nginxLock()
	image := after.Images["nginx:1.27"]
	image.Digest = digestC
	image.Platforms["linux/amd64"] = taskdef.ImageConfig{
		Digest: digestA, Entrypoint: []string{"/init"}, StopSignal: "SIGTERM", Volumes: []string{"/cache"},
		WorkingDir: "/srv", User: "101:101",
		Cmd: []string{"nginx", "-g", "daemon off;"}, Healthcheck: &taskdef.ImageHealth{Test: []string{"NONE"}},
	}
	delete(image.Platforms, "linux/arm64")
	image.Platforms["linux/arm/v7"] = taskdef.ImageConfig{Digest: digestB}
	after.Images["nginx:1.27"] = image
	before.Images["old"], after.Images["new"] = image, image
	web := "nginx:1.27"
	want := []taskdef.ImageChange{
		{Image: "new", Field: "image", After: digestC},
		{Image: web, Field: "digest", Before: digestA, After: digestC},
		{Image: web, Platform: "linux/amd64", Field: "digest", Before: digestB, After: digestA},
		{
			Image: web, Platform: "linux/amd64", Field: "entrypoint", Before: []string{"/docker-entrypoint.sh"},
			After: []string{"/init"},
		},
		{Image: web, Platform: "linux/amd64", Field: "stopSignal", Before: "SIGQUIT", After: "SIGTERM"},
		{
			Image: web, Platform: "linux/amd64", Field: "healthcheck",
			Before: nginxLock().Images[web].Platforms["linux/amd64"].Healthcheck,
			After:  &taskdef.ImageHealth{Test: []string{"NONE"}},
		},
		{Image: web, Platform: "linux/arm/v7", Field: "platform", After: digestB},
		{Image: web, Platform: "linux/arm64", Field: "platform", Before: digestC},
		{Image: "old", Field: "image", Before: digestC},
	}
	if diff := cmp.Diff(want, taskdef.DiffImages(before, after)); diff != "" {
		t.Error(diff)
	}
}

func TestDiffImagesNamesTheDigestOfAnImageWithoutAnIndexOnce(t *testing.T) {
	t.Parallel()
	lock := func(digest string, cmd []string) *taskdef.ImageLock {
		return &taskdef.ImageLock{Images: map[string]taskdef.LockedImage{
			"web": {
				Digest: digest, Platforms: map[string]taskdef.ImageConfig{"linux/amd64": {Digest: digest, Cmd: cmd}},
			},
		}}
	}
	want := []taskdef.ImageChange{{Image: "web", Field: "digest", Before: digestA, After: digestB}}
	if diff := cmp.Diff(want, taskdef.DiffImages(lock(digestA, nil), lock(digestB, []string{}))); diff != "" {
		t.Error(diff)
	}
}

func FuzzParseImageLock(f *testing.F) {
	f.Add(nginxLock().Encode())
	f.Add([]byte(`{"version": 1, "images": {"a": {"digest": null, "platforms": [{}]}}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		lock, err := taskdef.ParseImageLock(doc)
		if err != nil {
			return
		}
		again, err := taskdef.ParseImageLock(lock.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(lock, again); diff != "" {
			t.Error(diff)
		}
	})
}

package file_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

func TestImagesAreOfThisMachine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"app": 0o755, "data": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	var resolver runtime.Resolver
	i := file.Image{
		Programs: map[string]string{"/bin/app": "app"}, Files: map[string]string{"/data": "data", "/lib/app": "${lib}"},
		Volumes: map[string]string{"/v": "1:2"}, Cmd: []string{"app"}, User: "5",
	}
	got, errs := i.Host("app:1", dir, map[string]string{"lib": dir}, &resolver)
	want := runtime.Image{
		Name: "app:1", Programs: map[string]string{"/bin/app": filepath.Join(dir, "app")},
		Files: map[string]string{"/data": filepath.Join(dir, "data"), "/lib/app": dir}, Volumes: []runtime.Dir{
			{Path: "/v", UID: 1, GID: 2},
		},
		Cmd: []string{"app"}, User: "5",
	}
	if diff := cmp.Diff(want, got); diff != "" || len(errs) > 0 {
		t.Errorf("errors %v (-want +got):\n%s", errs, diff)
	}

	i = file.Image{
		Programs: map[string]string{"/bin/x": "data"}, Files: map[string]string{"/a": "none", "/b": "${none}"},
	}
	_, errs = i.Host("app:1", dir, nil, &resolver)
	var texts []string
	for _, err := range errs {
		texts = append(texts, strings.ReplaceAll(err.Error(), dir, "DIR"))
	}
	slices.Sort(texts)
	if diff := cmp.Diff([]string{
		`images["app:1"].files["/a"]: stat DIR/none: no such file or directory`,
		`images["app:1"].files["/b"]: needs ${none}, which was not found: give -var none=PATH`,
		`images["app:1"].programs["/bin/x"]: DIR/data is not executable: chmod +x makes it so`,
	}, texts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestImagesHavePathsOfContainers(t *testing.T) {
	t.Parallel()
	i := file.Image{Files: map[string]string{"data": "/x"}, Volumes: map[string]string{"/v": "me"}}
	var texts []string
	for _, err := range i.Problems() {
		texts = append(texts, err.Error())
	}
	if diff := cmp.Diff([]string{`volumes: /v: owner "me": want uid:gid, such as 5996:5996`,
		`files: "data": want an absolute path of the container`}, texts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

package file_test

import (
	"errors"
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
		Programs: file.Programs{Paths: map[string]string{"/bin/app": "app"}},
		Files:    map[string]string{"/data": "data", "/lib/app": "${lib}"},
		Volumes:  map[string]string{"/v": "1:2"}, Cmd: []string{"app"}, User: "5",
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
		Programs: file.Programs{Paths: map[string]string{"/bin/x": "data"}},
		Files:    map[string]string{"/a": "none", "/b": "${none}"},
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
	i := file.Image{Env: []string{"A=1", "FOO"}, Volumes: map[string]string{"/v": "me"},
		Programs: file.Programs{Paths: map[string]string{"host": "host"}, Words: []string{"sh", ""}}}
	var texts []string
	for _, err := range i.Problems() {
		texts = append(texts, err.Error())
	}
	if diff := cmp.Diff([]string{`programs: a program is missing; host stands for all that this machine has installed`,
		`programs: "host": want an absolute path of the container, or a list of programs in place of the mapping`,
		`volumes: /v: owner "me": want uid:gid, such as 5996:5996`,
		`env: "FOO": want NAME=value`}, texts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestProgramsHaveThreeForms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"scenario.yaml": `
images:
  all: {programs: host}
  some: {programs: "./server,sh"}
  list: {programs: [./server, "${bin}/server:/bin/httpd", "${bin}"], env: [A=1]}
  variable: {programs: ["${bin}/server"]}
  "*": {programs: {/bin/server: server}}
secrets: {/a: x, /b: {file: key}, /c: 7}
`, "server": "#!/bin/sh\n", "key": "two\nlines\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s, err := file.LoadSetting(dir)
	if err != nil {
		t.Fatal(err)
	}
	images, err := s.HostImages(map[string]string{"bin": dir})
	if err != nil {
		t.Fatal(err)
	}
	if images["all"].Files["/usr/bin"] == "" {
		t.Errorf("host: got %v", images["all"].Files)
	}
	server := filepath.Join(dir, "server")
	if got := images["some"].Programs; got["/localecs/bin/server"] != server || len(got) < 2 {
		t.Errorf("some: got %v", got)
	}
	path := "PATH=/localecs/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	other, _ := images.Find("other")
	want := []runtime.Image{
		{Name: "list", Programs: map[string]string{"/localecs/bin/server": server, "/bin/httpd": server},
			Files: map[string]string{dir: dir}, Cmd: []string{"/localecs/bin/server"}, Env: []string{path, "A=1"}},
		{Name: "other", Programs: map[string]string{"/bin/server": server}, Files: map[string]string{}},
	}
	onPath := map[string]string{server: server, "/localecs/bin/server": server}
	if diff := cmp.Diff(onPath, images["variable"].Programs); diff != "" {
		t.Errorf("variable (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, []runtime.Image{images["list"], other}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	secrets, err := s.SecretTexts()
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]string{"/a": "x", "/b": "two\nlines", "/c": "7"}, secrets); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFormsThatAreRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.yaml")
	for text, want := range map[string]string{
		"images: {a: {programs: {host: host}}}": `images["a"].programs: "host": want an absolute path of the ` +
			`container, or a list of programs in place of the mapping`,
		"images: {a: {programs: [sh, [ls]]}}":           "line 1, column 29: want a string, got a list",
		"images: {a: {programs: {/bin/sh: [sh]}}}":      "line 1, column 34: want a string, got a list",
		"images: {a: {stopSignal: SIGFOO}}":             `image "a": stop signal "SIGFOO" is unknown`,
		"images: {a: {files: {data: /}}}":               `image "a": path "data": want an absolute path below /`,
		"images: {a: {workingDir: here}}":               `image "a": path "here": want an absolute path below /`,
		"images: {a: {users: {envoy: x}}}":              `image "a": user "envoy" is "x": want uid or uid:gid`,
		"images: {a: {user: envoy}}":                    `images["a"].user: unable to find user envoy`,
		"account: '1'":                                  `account: "1": want 12 digits`,
		"region: here":                                  `region: "here": want a region such as us-east-1`,
		"secrets: {a: {}}":                              "secrets: want a value, or {file: FILE}",
		"secrets: {a: {path: x}}":                       `unknown key "path"`,
		"secrets: {a: [x]}":                             "want a mapping, got a sequence",
		"secrets: {a: {file: none}}":                    `secrets["a"]: `,
		`images: {a: {programs: [no-such]}}`:            `images["a"].programs: no-such: no program of that name`,
		"images: {a: {programs: ['${consul}/server']}}": `images["a"].programs: needs ${consul}, which was not found`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := file.LoadSetting(path)
		if err == nil {
			_, imageErr := s.HostImages(nil)
			_, secretErr := s.SecretTexts()
			err = errors.Join(imageErr, secretErr)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

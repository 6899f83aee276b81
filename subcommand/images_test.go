package subcommand

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/testkit/registry"
	"github.com/meshtask/consul-ecs/taskdef"
)

// callImages runs "consul-ecs images ..." with that standard input.
func callImages(stdin string, words ...string) (code int, stdout, stderr string) {
	app := cli.App{Name: "consul-ecs", Commands: map[string]cli.Command{"images": imagesCommand()}}
	var out, errs bytes.Buffer
	code = cli.Main(app, append([]string{"images"}, words...), func(string) string { return "" },
		strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

// writeNew writes a file into a new directory.
func writeNew(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// taskOf returns a task definition with containers of these images.
func taskOf(references ...string) string {
	var containers []string
	for i, reference := range references {
		containers = append(containers, fmt.Sprintf(`{"name": "c%d", "image": %q}`, i, reference))
	}
	return `{"family": "a", "containerDefinitions": [` + strings.Join(containers, ", ") + `]}`
}

// image returns one for linux/amd64.
func image(t *testing.T, config v1.Config) remote.Taggable {
	return registry.Image(t, "linux/amd64", config)
}

// lockFile locks the images of a task definition into a new file.
func lockFile(t *testing.T, references ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.lock.json")
	if code, _, stderr := callImages(taskOf(references...), "lock", "-o", file, "-"); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	return file
}

func TestImagesLockWritesALock(t *testing.T) {
	t.Parallel()
	r := registry.Start(t)
	one, two := r.Push(t, "one:1", image(t, v1.Config{Cmd: []string{"one"}})),
		r.Push(t, "two:1", image(t, v1.Config{Cmd: []string{"two"}}))
	task, template := writeNew(t, "a.json", taskOf(one)),
		writeNew(t, "b.yaml", "Resources:\n  A:\n    Type: AWS::ECS::TaskDefinition\n    Properties:\n"+
			"      ContainerDefinitions:\n        - {Name: two, Image: '"+two+
			"'}\n        - {Name: three, Image: !Ref Three}\n")
	file := filepath.Join(t.TempDir(), "images.lock.json")
	code, _, stderr := callImages("", "lock", task, template, "-o", file)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	slices.Sort(lines)
	want := []string{
		"read " + one + ": linux/amd64", "read " + two + ": linux/amd64",
		"skipped $.Resources.A.Properties.ContainerDefinitions[1].Image (container three) of " + template +
			": no reference before deployment",
		"wrote " + file + ", images: 2",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
	lock, err := readImageLock(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"two"}, lock.Images[two].Platforms["linux/amd64"].Cmd); diff != "" {
		t.Error(diff)
	}
}

func TestImagesLockIsDeterministic(t *testing.T) {
	t.Parallel()
	r := registry.Start(t)
	reference := r.Push(t, "one:1", image(t, v1.Config{Volumes: map[string]struct{}{"/a": {}, "/b": {}, "/c": {}}}))
	_, first, _ := callImages(taskOf(reference), "lock", "-o", "-", "-")
	_, second, _ := callImages(taskOf(reference), "lock", "-o", "-", "-")
	if diff := cmp.Diff(first, second); diff != "" {
		t.Error(diff)
	}
	if _, err := taskdef.ParseImageLock([]byte(first)); err != nil {
		t.Error(err)
	}
}

// TestImagesLockWritesToADevice: as root, a rename would put a file in its place.
func TestImagesLockWritesToADevice(t *testing.T) {
	t.Parallel()
	r := registry.Start(t)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	reference := r.Push(t, "one:1", image(t, v1.Config{}))
	if code, _, stderr := callImages(taskOf(reference), "lock", "-o", pipe, "-"); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	text := make([]byte, 1)
	if _, err := reader.Read(text); err != nil || text[0] != '{' {
		t.Errorf("the pipe has %q, %v", text, err)
	}
}

// TestImagesEndsOnInterrupt: also while it reads a file, where nothing can be undone.
func TestImagesEndsOnInterrupt(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	p := consulECS(t, nil, "images", "lock", "-o", pipe+".lock.json", pipe)
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits for the reader
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	p.Signal(syscall.SIGINT)
	if code := p.Wait(); code != 128+int(syscall.SIGINT) {
		t.Errorf("exit code %d", code)
	}
}

func TestImagesLockReadsInjectedImages(t *testing.T) {
	t.Parallel()
	r := registry.Start(t)
	app, mesh, envoy := r.Push(t, "app:1", image(t, v1.Config{})), r.Push(t, "mesh:1", image(t, v1.Config{})),
		r.Push(t, "envoy:1", image(t, v1.Config{}))
	file := writeNew(t, "mesh.json", fmt.Sprintf(`{"consulServers": {"hosts": "10.0.0.4"}, "proxy": {"mode": "direct"},
		"admission": {"images": {"consulECS": %q, "envoy": %q}}}`, mesh, envoy))
	task := strings.ReplaceAll(plainTask(withEntryPoint), "example/app:1", app)
	code, stdout, stderr := callImages(task, "lock", "-config", file, "-o", "-", "-")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	lock, err := taskdef.ParseImageLock([]byte(stdout))
	if err != nil {
		t.Fatal(err)
	}
	for _, reference := range []string{app, mesh, envoy} {
		if _, found := lock.Images[reference]; !found {
			t.Errorf("%s is not locked", reference)
		}
	}
}

func TestImagesLockKeepsTheOldLockWhenAnImageFails(t *testing.T) {
	t.Parallel()
	r := registry.Start(t)
	file := lockFile(t, r.Push(t, "one:1", image(t, v1.Config{})))
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	code, _, stderr := callImages(taskOf(r.Host+"/one:1", r.Host+"/one:2", r.Host+"/two:1"), "lock", "-o", file, "-")
	if code != 4 {
		t.Errorf("exit code %d", code)
	}
	for _, part := range []string{
		"consul-ecs images: image " + r.Host + "/one:2 (-, container c1): " + r.Host +
			" has no such tag or digest (404 MANIFEST_UNKNOWN: Unknown manifest): check the tag, or push the image\n",
		"consul-ecs images: image " + r.Host + "/two:1 (-, container c2): " + r.Host +
			" has no such repository (404 NAME_UNKNOWN: Unknown name): check the name\n",
	} {
		if !strings.Contains(stderr, part) {
			t.Errorf("%s lacks %s", stderr, part)
		}
	}
	after, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Error(diff)
	}
	if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) != 1 {
		t.Errorf("%d files beside the lock, %v", len(entries)-1, err)
	}
}

func TestImagesDiffOfTwoLocks(t *testing.T) {
	t.Parallel()
	r := registry.Start(t)
	reference := r.Push(t, "one:1", image(t, v1.Config{Entrypoint: []string{"/old"}, StopSignal: "SIGQUIT"}))
	before := lockFile(t, reference)
	r.Push(t, "one:1", image(t, v1.Config{Entrypoint: []string{"/new"}, StopSignal: "SIGQUIT", User: "5"}))
	after := lockFile(t, reference)
	r.Answer(nil)
	code, stdout, stderr := callImages("", "diff", before, after)
	if code != 2 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	lines := strings.Split(stdout, "\n")
	if !strings.HasPrefix(lines[0], reference+` digest: "sha256:`) {
		t.Errorf("the first line is %s", lines[0])
	}
	want := []string{reference + ` linux/amd64 entrypoint: ["/old"] -> ["/new"]`,
		reference + ` linux/amd64 user: none -> "5"`, ""}
	if diff := cmp.Diff(want, lines[1:]); diff != "" {
		t.Error(diff)
	}
	if code, stdout, _ = callImages("", "diff", after, after); code != 0 || stdout != "" {
		t.Errorf("exit code %d for equal locks: %s", code, stdout)
	}
}

func TestImagesDiffSinceTheLock(t *testing.T) {
	t.Parallel()
	r := registry.Start(t)
	one, two := r.Push(t, "one:1", image(t, v1.Config{})), r.Push(t, "two:1", image(t, v1.Config{}))
	lock := lockFile(t, one, two)
	r.Push(t, "two:1", image(t, v1.Config{StopSignal: "SIGINT"}))
	changed := `{"image":"` + two + `","platform":"linux/amd64","field":"stopSignal","before":null,"after":"SIGINT"}`
	for name, c := range map[string]struct {
		stdin string
		words []string
		code  int
		want  string
	}{
		"all of the lock":       {"", []string{lock}, 2, changed},
		"changed image of FILE": {taskOf(two), []string{"-lock", lock, "-"}, 2, changed},
		"same image of FILE":    {taskOf(one), []string{"-lock", lock, "-"}, 0, ""},
		"image without a lock": {
			taskOf(r.Push(t, "three:1", image(t, v1.Config{}))), []string{"-lock", lock, "-"}, 2,
			`three:1","field":"image","before":null,"after":"sha256:`,
		},
		"missing tag": {taskOf(r.Host + "/one:9"), []string{"-lock", lock, "-"}, 4, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := callImages(c.stdin, append([]string{"diff", "-json"}, c.words...)...)
			if code != c.code {
				t.Errorf("exit code %d: %s", code, stderr)
			}
			if !strings.Contains(stdout, c.want) {
				t.Errorf("%s, want %s", stdout, c.want)
			}
		})
	}
}

func TestImagesUsage(t *testing.T) {
	t.Parallel()
	task, damaged := writeNew(t, "a.json", taskOf("one")), writeNew(t, "damaged.lock.json", `{"version": 1`)
	later := writeNew(t, "later.lock.json", `{"version": 2, "images": {}}`)
	for name, c := range map[string]struct {
		words []string
		want  string
	}{
		"no verb":      {nil, "want images lock or images diff"},
		"unknown verb": {[]string{"show"}, `unknown subcommand "show": want lock or diff`},
		"no file":      {[]string{"lock"}, "want a FILE with a task definition"},
		"missing file": {
			[]string{"lock", "/nonexistent"}, "read the task definition: /nonexistent: no such file",
		},
		"no definition":       {[]string{"lock", damaged}, damaged + ": line 1, column 14"},
		"missing mesh":        {[]string{"lock", "-config", "/nonexistent", task}, "read the mesh file"},
		"lock of diff":        {[]string{"lock", "-lock", "x", task}, "-lock and -json are flags of images diff"},
		"output of lock":      {[]string{"diff", "-o", "x", task}, "-o is a flag of images lock"},
		"over the definition": {[]string{"lock", "-o", task, task}, "would replace the task definition"},
		"no time":             {[]string{"lock", "-timeout", "0", task}, "-timeout 0s: want more than 0"},
		"no copy": {
			[]string{"lock", "-from", "/nonexistent", task}, "-from: /nonexistent: no such file or directory",
		},
		"no directory": {
			[]string{"lock", "-o", "/nonexistent/a", writeNew(t, "none.json", `[]`)}, "write /nonexistent/a: ",
		},
		"no lock": {
			[]string{"diff", "-lock", "/nonexistent", task}, "read the image lock: /nonexistent: no such file",
		},
		"damaged lock": {
			[]string{"diff", damaged},
			damaged + ": damaged image lock, make it again with `consul-ecs images lock`: line 1, column 14",
		},
		"lock of version 2": {
			[]string{"diff", "-lock", later, task}, later + ": image lock of version 2: this program reads version 1",
		},
		"damaged of two": {[]string{"diff", damaged, later}, "damaged image lock"},
		"lock and definition": {
			[]string{"diff", damaged, task}, "want two image locks, or -lock FILE and task definitions",
		},
		"two places of a lock": {[]string{"diff", "-lock", later, damaged}, "give one of them"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := callImages("", c.words...)
			if code != 1 {
				t.Errorf("exit code %d", code)
			}
			if !strings.Contains(stderr, c.want) {
				t.Errorf("%s, want %s", stderr, c.want)
			}
			if stdout != "" {
				t.Errorf("printed %s", stdout)
			}
		})
	}
}

func TestImagesProgressOnATerminal(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := progress{terminal: true, out: &out}
	p.report("a:1", taskdef.LockedImage{Platforms: map[string]taskdef.ImageConfig{"linux/amd64": {}}})
	p.end()
	if want := "\r\x1b[K1: read a:1: linux/amd64\r\x1b[K"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// TestImagesLockUsesTheCredentialsOfDocker uses one registry with a login in Docker's file, and
// one of a credential helper.
func TestImagesLockUsesTheCredentialsOfDocker(t *testing.T) {
	inFile, helped := registry.Start(t), registry.Start(t)
	references := []string{inFile.Push(t, "private/one:1", image(t, v1.Config{})),
		helped.Push(t, "private/two:1", image(t, v1.Config{}))}
	for _, r := range []*registry.Registry{inFile, helped} {
		r.Answer(func(w http.ResponseWriter, req *http.Request) bool {
			if user, password, _ := req.BasicAuth(); user == "me" && password == "secret of "+r.Host {
				return false
			}
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		})
	}
	dir := t.TempDir()
	helper := "#!/bin/sh\nread host\necho '{\"ServerURL\": \"'$host'\", \"Username\": \"me\", \"Secret\": \"secret of " +
		"'$host'\"}'\n"
	if err := os.WriteFile(filepath.Join(dir, "docker-credential-test"), []byte(helper), 0o700); err != nil {
		t.Fatal(err)
	}
	login := base64.StdEncoding.EncodeToString([]byte("me:secret of " + inFile.Host))
	config := fmt.Sprintf(`{"auths": {%q: {"auth": %q}}, "credHelpers": {%q: "test"}}`, inFile.Host, login, helped.Host)
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := callImages(taskOf(references...), "lock", "-o", "-", "-"); code != 4 {
		t.Errorf("exit code %d without credentials: %s", code, stderr)
	}
	t.Setenv("HOME", dir)
	t.Setenv("DOCKER_CONFIG", dir)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	code, stdout, stderr := callImages(taskOf(references...), "lock", "-o", "-", "-")
	if code != 0 {
		t.Errorf("exit code %d with credentials: %s", code, stderr)
	}
	if strings.Contains(stdout+stderr, "secret") {
		t.Error("a password is printed")
	}
}

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/internal/testkit/dockerengine"
)

func TestMain(m *testing.M) {
	testkit.RunRole(dockerengine.Roles())
	os.Exit(m.Run())
}

const testVersion = "1.2.3"

// lab is an engine with our image.
type lab struct {
	*dockerengine.Engine
	dist  string // what make left
	image string
}

// TestImage builds the image as a user does and runs it.
func TestImage(t *testing.T) {
	l := &lab{Engine: dockerengine.Start(t), dist: t.TempDir()}
	l.image = l.make(t, "classic", "image", "DOCKER_BUILDKIT=0")
	for name, test := range map[string]func(*testing.T){
		"config":       l.config,
		"files":        l.files,
		"builders":     l.builders,
		"other arch":   l.otherArch,
		"sbom":         l.sbom,
		"no shell":     l.noShell,
		"read-only":    l.readOnly,
		"volume owner": l.volumeOwner,
		"task":         l.task,
		"closed token": l.closedToken,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// make makes the target, image or image-<arch>, and returns the image's name.
func (l *lab) make(t *testing.T, name, target string, env ...string) string {
	t.Helper()
	name = l.ID + name
	// The first build for another architecture compiles everything.
	ctx, cancel := context.WithTimeout(t.Context(), 5*dockerengine.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "make", "-C", testkit.Root(), target,
		"IMAGE="+name, "VERSION="+testVersion, "DIST="+l.dist, "DOCKER="+l.Docker)
	for _, pair := range slices.Concat(l.Env, env) {
		if !strings.HasPrefix(pair, "MAKE") && !strings.HasPrefix(pair, "MFLAGS") {
			cmd.Env = append(cmd.Env, pair)
		}
	}
	if out, code := dockerengine.Finish(cmd); code != 0 {
		t.Fatalf("make %s: exit code %d: %s%s", target, code, out.Stdout, out.Stderr)
	}
	return name + ":" + testVersion + strings.TrimPrefix(target, "image")
}

// inspection is what we read of docker image inspect.
type inspection struct {
	Architecture, Os string
	Size             int64
	RootFS           struct{ Layers []string }
	Config           struct {
		User       string
		Entrypoint []string
		Cmd        []string
		Volumes    map[string]struct{}
		Labels     map[string]string
	}
}

func (l *lab) inspect(t *testing.T, image string) inspection {
	t.Helper()
	var all []inspection
	if err := json.Unmarshal([]byte(l.Run(t, "image", "inspect", image)), &all); err != nil || len(all) != 1 {
		t.Fatalf("%d images, error %v", len(all), err)
	}
	return all[0]
}

func (l *lab) config(t *testing.T) {
	got := l.inspect(t, l.image)
	labels := got.Config.Labels
	for _, key := range []string{"revision", "created"} {
		key = "org.opencontainers.image." + key
		if labels[key] == "" {
			t.Errorf("label %s is empty", key)
		}
		delete(labels, key)
	}
	want := map[string]string{
		"org.opencontainers.image.title":       "consul-ecs",
		"org.opencontainers.image.description": "Puts an Amazon ECS task into a Consul service mesh and takes it out again",
		"org.opencontainers.image.version":     testVersion,
		"org.opencontainers.image.source":      "https://github.com/meshtask/consul-ecs",
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
	if diff := cmp.Diff(want, labels); diff != "" {
		t.Error(diff)
	}
	c := got.Config
	if got.Os != "linux" || got.Architecture != runtime.GOARCH || c.User != "5996:5996" ||
		!slices.Equal(c.Entrypoint, []string{"/bin/consul-ecs"}) || len(c.Cmd) > 0 || len(c.Volumes) != 1 {
		t.Errorf("got %+v", got)
	}
	if _, ok := c.Volumes["/consul"]; !ok {
		t.Errorf("volumes %v", c.Volumes)
	}
	program, err := os.Stat(filepath.Join(l.dist, runtime.GOARCH, "consul-ecs"))
	if err != nil {
		t.Fatal(err)
	}
	if more := got.Size - program.Size(); more < 0 || more > 1_000_000 {
		t.Errorf("the image is %d bytes larger than the program of %d", more, program.Size())
	}
}

// files is everything in the image, with mode and owner.
func (l *lab) files(t *testing.T) {
	want := []string{
		"bin 0755 0:0", "bin/consul-ecs 0755 0:0", "consul 0755 5996:5996", "etc 0755 0:0", "etc/group 0644 0:0",
		"etc/passwd 0644 0:0", "etc/ssl 0755 0:0", "etc/ssl/certs 0755 0:0", "etc/ssl/certs/ca-certificates.crt 0644 0:0",
	}
	var got []string
	walk(t, l.layer(t, l.image), func(h *tar.Header, _ io.Reader) {
		got = append(got, fmt.Sprintf("%s %04o %d:%d", strings.Trim(h.Name, "./"), h.Mode&0o7777, h.Uid, h.Gid))
	})
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// layer is the image's one layer, as docker save writes it.
func (l *lab) layer(t *testing.T, image string) []byte {
	t.Helper()
	var layers [][]byte
	walk(t, []byte(l.Run(t, "save", image)), func(h *tar.Header, r io.Reader) {
		if data, err := io.ReadAll(r); err == nil && isTar(data) && !strings.HasSuffix(h.Name, ".json") {
			layers = append(layers, data)
		}
	})
	if len(layers) != 1 {
		t.Fatalf("%d layers, want 1", len(layers))
	}
	return layers[0]
}

// isTar looks for the magic number.
func isTar(data []byte) bool { return len(data) > 512 && string(data[257:262]) == "ustar" }

func walk(t *testing.T, archive []byte, visit func(*tar.Header, io.Reader)) {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		visit(h, r)
	}
}

// builders: BuildKit and the builder before it make the same layer, so the
// second of them has built it anew.
func (l *lab) builders(t *testing.T) {
	testkit.Long(t)
	help := l.Command(t.Context(), "build", "--help")
	help.Env = append(help.Env, "DOCKER_BUILDKIT=1")
	if out, code := dockerengine.Finish(help); code != 0 || !strings.Contains(out.Stdout, "--secret") {
		testkit.Missing(t, "this docker client has no BuildKit")
	}
	image := l.make(t, "buildkit", "image-"+runtime.GOARCH, "DOCKER_BUILDKIT=1")
	classic, buildkit := l.inspect(t, l.image), l.inspect(t, image)
	if diff := cmp.Diff(classic.RootFS, buildkit.RootFS); diff != "" {
		t.Error(diff)
	}
	if buildkit.Config.User != "5996:5996" || buildkit.Architecture != runtime.GOARCH {
		t.Errorf("got %+v", buildkit)
	}
}

// otherArch compiles everything again.
func (l *lab) otherArch(t *testing.T) {
	testkit.Long(t)
	arch, machine := "arm64", elf.EM_AARCH64
	if runtime.GOARCH == arch {
		arch, machine = "amd64", elf.EM_X86_64
	}
	image := l.make(t, "other", "image-"+arch, "DOCKER_BUILDKIT=0")
	if got := l.inspect(t, image); got.Architecture != arch || got.Os != "linux" {
		t.Errorf("%s/%s, want linux/%s", got.Os, got.Architecture, arch)
	}
	found := false
	walk(t, l.layer(t, image), func(h *tar.Header, r io.Reader) {
		if strings.Trim(h.Name, "./") != "bin/consul-ecs" {
			return
		}
		found = true
		data, _ := io.ReadAll(r)
		program, err := elf.NewFile(bytes.NewReader(data))
		if err != nil || program.Machine != machine || len(program.Progs) == 0 || program.Section(".interp") != nil {
			t.Errorf("not a static program for %s (error %v)", arch, err)
		}
	})
	if !found {
		t.Error("no program")
	}
}

// sbom: the modules that are linked, no more and no less.
func (l *lab) sbom(t *testing.T) {
	var bom struct {
		Format   string `json:"bomFormat"`
		Spec     string `json:"specVersion"`
		Metadata struct {
			Component struct{ Type, Name, Version string }
		}
		Components []struct{ Name, Version, Purl string }
	}
	data, err := os.ReadFile(filepath.Join(l.dist, "consul-ecs-"+runtime.GOARCH+".cdx.json"))
	if err == nil {
		err = json.Unmarshal(data, &bom)
	}
	if err != nil {
		t.Fatal(err)
	}
	if bom.Format != "CycloneDX" || bom.Spec == "" {
		t.Errorf("format %q, version %q", bom.Format, bom.Spec)
	}
	if c := bom.Metadata.Component; c.Type != "application" || c.Name != "consul-ecs" || c.Version != testVersion {
		t.Errorf("about %+v", c)
	}
	info, err := buildinfo.ReadFile(filepath.Join(l.dist, runtime.GOARCH, "consul-ecs"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"go " + strings.TrimPrefix(info.GoVersion, "go")}
	for _, m := range info.Deps {
		want = append(want, m.Path+" "+strings.TrimPrefix(m.Version, "v"))
	}
	var got []string
	for _, c := range bom.Components {
		if c.Name == info.Main.Path {
			continue
		}
		got = append(got, c.Name+" "+strings.TrimPrefix(c.Version, "v"))
		if !strings.HasPrefix(c.Purl, "pkg:golang/"+strings.ToLower(c.Name)+"@") { // as the type golang demands
			t.Errorf("%s has the package URL %q", c.Name, c.Purl)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

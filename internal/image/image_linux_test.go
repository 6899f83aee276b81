package main

import (
	"archive/tar"
	"context"
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
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/internal/testkit/dockerengine"
)

func TestMain(m *testing.M) {
	testkit.RunRole(dockerengine.Roles())
	os.Exit(m.Run())
}

// fixture is an engine with our image.
type fixture struct {
	*dockerengine.Engine
	dist  string // what make left
	image string
}

// TestImage builds the image as a user does and runs it.
func TestImage(t *testing.T) {
	l := &fixture{Engine: dockerengine.Start(t), dist: t.TempDir()}
	l.image = l.make(t, "ours", "image")
	for name, test := range map[string]func(*testing.T){
		"config":       l.config,
		"files":        l.files,
		"Dockerfile":   l.dockerfile,
		"other arch":   l.otherArch,
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
func (l *fixture) make(t *testing.T, name, target string) string {
	t.Helper()
	name = l.ID + name
	// The first build for another architecture compiles everything.
	ctx, cancel := context.WithTimeout(t.Context(), 5*dockerengine.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "make", "-C", testkit.Root(), target,
		"IMAGE="+name, "VERSION="+testVersion, "DIST="+l.dist, "DOCKER="+l.Docker)
	cmd.Env = withoutMake(l.Env)
	if out, code := dockerengine.Finish(cmd); code != 0 {
		t.Fatalf("make %s: exit code %d: %s%s", target, code, out.Stdout, out.Stderr)
	}
	return name + ":" + testVersion + strings.TrimPrefix(target, "image")
}

// inspection is what we read of docker image inspect.
type inspection struct {
	Architecture, Os string
	Config           imageConfig
}

// imageConfig is all that a container gets from its image.
type imageConfig struct {
	User, WorkingDir              string
	Entrypoint, Cmd, Env, OnBuild []string
	Volumes, ExposedPorts         map[string]struct{}
	Labels                        map[string]string
	Healthcheck                   any
	StopSignal                    string
}

func (l *fixture) inspect(t *testing.T, image string) inspection {
	t.Helper()
	var all []inspection
	if err := json.Unmarshal([]byte(l.Run(t, "image", "inspect", image)), &all); err != nil || len(all) != 1 {
		t.Fatalf("%d images, error %v", len(all), err)
	}
	return all[0]
}

func (l *fixture) config(t *testing.T) {
	got := l.inspect(t, l.image)
	labels := got.Config.Labels
	for _, key := range []string{"revision", "created"} {
		key = "org.opencontainers.image." + key
		if labels[key] == "" {
			t.Errorf("label %s is empty", key)
		}
		delete(labels, key)
	}
	want := inspection{Architecture: runtime.GOARCH, Os: "linux", Config: imageConfig{
		User: "5996:5996", WorkingDir: "/", Entrypoint: []string{"/bin/consul-ecs"},
		Volumes: map[string]struct{}{"/consul": {}},
		Env:     []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "consul-ecs",
			"org.opencontainers.image.description": "Puts an Amazon ECS task into a Consul service mesh and takes it out again",
			"org.opencontainers.image.version":     testVersion,
			"org.opencontainers.image.source":      "https://github.com/meshtask/consul-ecs",
			"org.opencontainers.image.licenses":    "Apache-2.0",
		},
	}}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

// files checks everything in the image but the licences, with mode and owner.
func (l *fixture) files(t *testing.T) {
	want := []string{
		"bin/ 0755 0:0", "bin/consul-ecs 0755 0:0", "consul/ 0755 5996:5996", "etc/ 0755 0:0", "etc/group 0644 0:0",
		"etc/passwd 0644 0:0", "etc/ssl/ 0755 0:0", "etc/ssl/certs/ 0755 0:0",
		"etc/ssl/certs/ca-certificates.crt 0644 0:0",
		"usr/ 0755 0:0", "usr/share/ 0755 0:0", "usr/share/licenses/ 0755 0:0",
	}
	var got []string
	size := int64(0)
	for _, f := range l.layer(t, l.image) {
		if !strings.HasPrefix(f.Name, "usr/share/licenses/consul-ecs/") {
			got = append(got, fmt.Sprintf("%s %04o %d:%d", f.Name, f.Mode, f.UID, f.GID))
		}
		if f.Name != "bin/consul-ecs" {
			size += f.Size
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if size > 1_000_000 {
		t.Errorf("the image is %d bytes larger than the program", size)
	}
}

// layerFile is a file of a layer.
type layerFile struct {
	Name       string
	Mode, Size int64
	UID, GID   int
	Modified   int64
	SHA256     string
}

// layer returns the image's one layer, as docker save writes it.
func (l *fixture) layer(t *testing.T, image string) []layerFile {
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
	var files []layerFile
	walk(t, layers[0], func(h *tar.Header, r io.Reader) {
		data, err := io.ReadAll(r)
		if err != nil {
			t.Error(err)
		}
		files = append(files, layerFile{
			Name: strings.TrimPrefix(h.Name, "./"), Mode: h.Mode & 0o7777, Size: h.Size, UID: h.Uid, GID: h.Gid,
			Modified: h.ModTime.Unix(), SHA256: digest(data)["sha256"],
		})
	})
	slices.SortFunc(files, func(a, b layerFile) int { return strings.Compare(a.Name, b.Name) })
	return files
}

// isTar looks for the magic number.
func isTar(data []byte) bool { return len(data) > 512 && string(data[257:262]) == "ustar" }

// dockerfile checks that the Dockerfile's image has the same files and configuration, with either builder.
func (l *fixture) dockerfile(t *testing.T) {
	ours := l.inspect(t, l.image)
	files := l.layer(t, l.image)
	for name, kit := range map[string]string{"classic": "0", "BuildKit": "1"} {
		t.Run(name, func(t *testing.T) {
			if kit == "1" {
				l.needBuildKit(t)
			}
			image := l.ID + "dockerfile" + kit
			ctx, cancel := context.WithTimeout(t.Context(), dockerengine.Limit)
			defer cancel()
			cmd := l.Command(ctx, "build", "-f", filepath.Join(testkit.Root(), "Dockerfile"), "-t", image)
			for _, label := range []string{"version", "revision", "created"} {
				value := ours.Config.Labels["org.opencontainers.image."+label]
				cmd.Args = append(cmd.Args, "--build-arg", strings.ToUpper(label)+"="+value)
			}
			cmd.Args = append(cmd.Args, filepath.Join(l.dist, "image-"+runtime.GOARCH))
			cmd.Env = append(cmd.Env, "DOCKER_BUILDKIT="+kit)
			if out, code := dockerengine.Finish(cmd); code != 0 {
				t.Fatalf("docker build: exit code %d: %s%s", code, out.Stdout, out.Stderr)
			}
			if diff := cmp.Diff(ours, l.inspect(t, image), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(files, l.layer(t, image)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func (l *fixture) needBuildKit(t *testing.T) {
	testkit.Long(t)
	help := l.Command(t.Context(), "build", "--help")
	help.Env = append(help.Env, "DOCKER_BUILDKIT=1")
	if out, code := dockerengine.Finish(help); code != 0 || !strings.Contains(out.Stdout, "--secret") {
		testkit.Missing(t, "this docker client has no BuildKit")
	}
}

// otherArch compiles everything again.
func (l *fixture) otherArch(t *testing.T) {
	testkit.Long(t)
	arch, machine := "arm64", elf.EM_AARCH64
	if runtime.GOARCH == arch {
		arch, machine = "amd64", elf.EM_X86_64
	}
	image := l.make(t, "other", "image-"+arch)
	if got := l.inspect(t, image).Architecture; got != arch {
		t.Errorf("architecture %s, want %s", got, arch)
	}
	program, err := elf.Open(filepath.Join(l.dist, arch, "consul-ecs"))
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	if program.Machine != machine {
		t.Errorf("the program is for %s, want %s", program.Machine, machine)
	}
	if program.Section(".interp") != nil {
		t.Error("the program is not static")
	}
	for _, f := range l.layer(t, image) {
		if f.Name == "bin/consul-ecs" {
			return
		}
	}
	t.Error("no program")
}

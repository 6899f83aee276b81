package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/internal/testkit/dockerengine"
)

// container runs one to its end, without a network unless args name one.
func (l *fixture) container(args ...string) (dockerengine.Output, int) {
	base := []string{"run", "--rm", "--label", l.ID}
	if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--network=") }) {
		base = append(base, "--network=none")
	}
	return l.Try(append(base, args...)...)
}

// want checks how a container ended.
func want(t *testing.T, out dockerengine.Output, code, wanted int, parts ...string) {
	t.Helper()
	if code != wanted {
		t.Errorf("exit code %d, want %d: %s%s", code, wanted, out.Stdout, out.Stderr)
	}
	for _, part := range parts {
		if !strings.Contains(out.Stdout+out.Stderr, part) {
			t.Errorf("output lacks %q: %s%s", part, out.Stdout, out.Stderr)
		}
	}
}

func (l *fixture) noShell(t *testing.T) {
	for _, shell := range []string{"sh", "/bin/sh"} {
		out, code := l.container("--entrypoint", shell, l.image, "-c", "exit 0")
		want(t, out, code, 127, "unable to start container process: exec: ")
	}
}

// readOnly: no command needs a place to write but the volume.
func (l *fixture) readOnly(t *testing.T) {
	const version = "consul-ecs v" + testVersion
	config := `CONSUL_ECS_CONFIG_JSON={"bootstrapDir":"/consul","service":{"port":1}}`
	for _, c := range []struct {
		name string
		code int
		part string
		args []string
	}{
		{"version", 0, "consul-ecs v" + testVersion, []string{l.image, "version"}},
		{"schema", 0, "bootstrapDir", []string{l.image, "config", "schema"}},
		{"validate", 0, "", []string{"-e", config, l.image, "config", "validate"}},
		{"install", 0, "installed", []string{l.image, "install", "-to", "/consul"}},
		{"install elsewhere", 1, "directory /etc is not writable: ", []string{l.image, "install", "-to", "/etc"}},
		{"mesh-init", 1, "ECS_CONTAINER_METADATA_URI_V4 is not set", []string{"-e", config, l.image, "mesh-init"}},
		{"net-dial", 2, "connection refused", []string{l.image, "net-dial", "127.0.0.1:1"}},
		{"app-entrypoint", 0, version, []string{l.image, "app-entrypoint", "/bin/consul-ecs", "version"}},
		{"envoy-entrypoint", 0, version, []string{l.image, "envoy-entrypoint", "/bin/consul-ecs", "version"}},
		{"user by name", 0, "installed", []string{"-u", "consul-ecs:consul-ecs", l.image, "install", "-to", "/consul"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			restricted := []string{"--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"}
			out, code := l.container(append(restricted, c.args...)...)
			want(t, out, code, c.code, c.part)
		})
	}
}

// scratch imports an image FROM scratch, whose /consul and user have the ID.
func (l *fixture) scratch(t *testing.T, name, program string, id int, mode int64, more ...entry) string {
	t.Helper()
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	path := "/bin/" + filepath.Base(program)
	r, w := io.Pipe()
	go func() {
		w.CloseWithError(writeTar(w, append([]entry{
			{path: "consul/", mode: mode, owner: id},
			{path: "bin/", mode: 0o755},
			{path: path[1:], mode: 0o755, data: data},
		}, more...), time.Unix(0, 0)))
	}()
	ctx, cancel := context.WithTimeout(t.Context(), dockerengine.Limit)
	defer cancel()
	name = l.ID + name
	cmd := l.Command(ctx, "import", "--change", "VOLUME /consul", "--change", `ENTRYPOINT ["`+path+`"]`, "-", name)
	cmd.Stdin = r
	if out, code := dockerengine.Finish(cmd); code != 0 {
		t.Fatalf("docker import: exit code %d: %s%s", code, out.Stdout, out.Stderr)
	}
	return name
}

// peer builds the program that stands for others.
func peer(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "peer")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./internal/image/testdata/peer")
	cmd.Dir = testkit.Root()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, code := dockerengine.Finish(cmd); code != 0 {
		t.Fatalf("go build: exit code %d: %s%s", code, out.Stdout, out.Stderr)
	}
	return program
}

// mount is a volume at /consul, with options of docker run -v.
type mount struct{ volume, options string }

func (m mount) writable() string {
	return m.volume + ":/consul" + strings.TrimSuffix(":"+m.options, ":")
}
func (m mount) readOnly() string {
	return m.volume + ":/consul:" + strings.TrimPrefix(m.options+",ro", ",")
}

// layOut makes a volume that the given image has mounted first; without one it
// is as ECS makes it, empty and root's.
func (l *fixture) layOut(t *testing.T, first string) mount {
	t.Helper()
	m := mount{volume: l.Run(t, "volume", "create", "--label", l.ID)}
	if first == "" {
		m.options = "nocopy"
		return m
	}
	l.Run(t, "rm", l.Run(t, "create", "--label", l.ID, "-v", m.writable(), first, "version"))
	return m
}

// volumeOwner checks that the first container that mounts the empty volume decides its owner.
func (l *fixture) volumeOwner(t *testing.T) {
	program := peer(t)
	file := entry{path: "consul/theirs", mode: 0o644, owner: 1000}
	theirs := l.scratch(t, "theirs", program, 1000, 0o750, file)
	open := l.scratch(t, "open", program, 0, 0o777, file)
	bare := l.scratch(t, "bare", program, 1000, 0o750)
	const refused = "directory /consul is not writable: permission denied (running as "
	const ours = "; directory has mode 0755, owner 5996:5996)"
	for _, c := range []struct {
		name, first, user string
		readOnly, bare    bool // bare: without capabilities
		code              int
		parts             []string
	}{
		{name: "ours first, as its user", first: l.image},
		{name: "ours first, as root", first: l.image, user: "0"},
		{name: "ours first, as another", first: l.image, user: "5995", code: 1,
			parts: []string{refused + "uid 5995, gid 0" + ours, `"user": "5996:5996"`}},
		{name: "ours first, as root without capabilities", first: l.image, user: "0", bare: true, code: 1,
			parts: []string{refused + "uid 0, gid 0" + ours, `"user": "5996:5996"`}},
		{name: "ours first, mounted read-only", first: l.image, user: "5996", readOnly: true, code: 1,
			parts: []string{"read-only file system", "remove readOnly from this container's mount point"}},
		{name: "empty, as our user", user: "5996", code: 1,
			parts: []string{refused + "uid 5996, gid 5996; directory has mode 0755, owner 0:0)", `"user": "0:0"`}},
		{name: "empty, as root", user: "0"},
		{name: "theirs first, as our user", first: theirs, code: 1,
			parts: []string{
				refused + "uid 5996, gid 5996; directory has mode 0750, owner 1000:1000)", `"user": "1000:1000"`,
			}},
		{name: "theirs first, as their user", first: theirs, user: "1000:1000"},
		{name: "theirs first, as root", first: theirs, user: "0"},
		{name: "theirs first, open, as our user", first: open},
		{name: "theirs first, with nothing in it, as our user", first: bare},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			volume := l.layOut(t, c.first)
			args := []string{"--read-only", "-v", volume.writable()}
			if c.readOnly {
				args[2] = volume.readOnly()
			}
			if c.user != "" {
				args = append(args, "--user", c.user)
			}
			if c.bare {
				args = append(args, "--cap-drop=ALL")
			}
			out, code := l.container(append(args, l.image, "install", "-to", "/consul")...)
			want(t, out, code, c.code, c.parts...)
			if c.code == 0 { // and another image's container can run it
				out, code = l.container("--read-only", "--user=1000:1000", "-v", volume.readOnly(),
					"--entrypoint=/consul/consul-ecs", theirs, "version")
				want(t, out, code, 0, "consul-ecs v"+testVersion)
			}
		})
	}
	out, code := l.container(l.image, "install", "-to", "/nowhere")
	want(t, out, code, 1,
		"directory /nowhere does not exist (running as uid 5996, gid 5996): mount the task's shared volume there")
}

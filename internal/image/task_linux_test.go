package main

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/internal/testkit/dockerengine"
)

const (
	metadataAddress = "127.0.0.1:51678"
	// Name is the asking container's: the base URI has the same answer.
	metadata = `{"Name": "app", "Cluster": "arn:aws:ecs:us-west-2:111122223333:cluster/image",
"TaskARN": "arn:aws:ecs:us-west-2:111122223333:task/image/TASK",
"Family": "web", "Revision": "1", "DesiredStatus": "RUNNING", "KnownStatus": "RUNNING",
"Containers": [{"Name": "app", "Type": "NORMAL", "DesiredStatus": "RUNNING", "KnownStatus": "RUNNING",
"Health": {"status": "HEALTHY", "statusSince": "2026-01-01T00:00:00Z", "exitCode": 0},
"Networks": [{"NetworkMode": "awsvpc", "IPv4Addresses": ["127.0.0.1"]}]}]}`
	bootstrapFile = "/consul/envoy-bootstrap.json"
	taskConfig    = `{"bootstrapDir": "/consul", "service": {"port": 8080}, "healthSyncContainers": ["app"]}`
)

// task runs the containers of a mesh task as three users that share a volume:
// mesh-init writes it, Envoy's container (5995) and health-sync (5996) mount it
// read-only.
func (l *fixture) task(t *testing.T) {
	proxy := l.scratch(t, "proxy", peer(t), 1000, 0o755, entry{path: "consul/theirs", mode: 0o644, owner: 1000})
	consul := l.scratch(t, "consul", testkit.RequireBinary(t, "consul"), 100, 0o755)
	// The containers of a task share a network, whose first container ECS adds.
	pause := l.Run(t, "run", "-d", "--label", l.ID, "--network=none", proxy, "serve", metadataAddress, metadata)
	network := "--network=container:" + pause
	l.Run(t, "run", "-d", "--label", l.ID, network, consul, "agent", "-dev", "-log-level=warn")

	const binary, bootstrap = "consul/consul-ecs 0755 ", "consul/envoy-bootstrap.json "
	const status, theirs = "consul/mesh-init.json 0644 ", "consul/theirs 0644 1000:1000"
	owner := func(of string) string { return "consul 0755 " + of }
	for i, c := range []struct {
		name, first string // who mounts the volume first
		user        string // mesh-init's
		flags       []string
		token       bool // the bootstrap holds one
		proxyUser   string
		want        []string
	}{
		{"ours first", l.image, "5996", nil, false, "5995",
			[]string{owner("5996:5996"), binary + "5996:5996", bootstrap + "0444 5996:5996", status + "5996:5996"}},
		{"ours first, mesh-init as root", l.image, "0", nil, false, "5995",
			[]string{owner("5996:5996"), binary + "0:0", bootstrap + "0444 0:0", status + "0:0"}},
		{"empty, mesh-init as root", "", "0", nil, false, "5995",
			[]string{owner("0:0"), binary + "0:0", bootstrap + "0444 0:0", status + "0:0"}},
		{"theirs first, mesh-init as root", proxy, "0", nil, false, "5995",
			[]string{owner("1000:1000"), binary + "0:0", bootstrap + "0444 0:0", status + "0:0", theirs}},
		{"a token, ours first", l.image, "5996:5996", nil, true, "5995:5996",
			[]string{owner("5996:5996"), binary + "5996:5996", bootstrap + "0640 5996:5996", status + "5996:5996"}},
		{"a token, theirs first", proxy, "0", []string{"-file-group", "consul-ecs"}, true, "5995:5996",
			[]string{owner("1000:1000"), binary + "0:0", bootstrap + "0640 0:5996", status + "0:0", theirs}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			volume := l.layOut(t, c.first)
			env := []string{
				"--label", l.ID, network, "--read-only",
				"-e", "CONSUL_ECS_CONFIG_JSON=" + taskConfig,
				"-e", fmt.Sprintf("ECS_CONTAINER_METADATA_URI_V4=http://%s/task%d", metadataAddress, i),
			}
			if c.token {
				env = append(env, "-e", "CONSUL_HTTP_TOKEN=secret")
			}
			ours := []string{"--user", c.user, "-v", volume.writable(), l.image, "mesh-init"}
			meshInit := l.Run(t, slices.Concat([]string{"create"}, env, ours, c.flags)...)
			out, code := l.Try("start", "--attach", meshInit)
			want(t, out, code, 0, "task is ready for the mesh")
			if diff := cmp.Diff(c.want, l.owners(t, meshInit)); diff != "" {
				t.Error(diff)
			}

			if c.token {
				// The proxy's user needs no group, any other one does.
				out, code = l.container("--user=5995", "-v", volume.readOnly(), proxy, "read", bootstrapFile)
				want(t, out, code, 0, "read /consul/envoy-bootstrap.json true")
				out, code = l.container("--user=5994", "-v", volume.readOnly(), proxy, "read", bootstrapFile)
				want(t, out, code, 1, "permission denied")
			}
			inProxy := []string{
				network, "--read-only", "--cap-drop=ALL", "-v", volume.readOnly(), "--user", c.proxyUser,
				"--entrypoint=/consul/consul-ecs", proxy,
			}
			out, code = l.container(append(inProxy, "app-entrypoint", "/bin/peer", "read", bootstrapFile)...)
			want(t, out, code, 0, "read /consul/envoy-bootstrap.json true")
			out, code = l.container(append(inProxy, "net-dial", "127.0.0.1:8500")...)
			want(t, out, code, 0)

			sync := []string{"--cap-drop=ALL", "-v", volume.readOnly(), "--user=5996", l.image, "health-sync"}
			healthSync := l.Run(t, slices.Concat([]string{"run", "-d"}, env, sync)...)
			l.awaitLog(t, healthSync, "status=passing")
			l.Run(t, "stop", "-t=60", healthSync)
			out, _ = l.Try("logs", healthSync)
			if code := l.Run(t, "wait", healthSync); code != "0" {
				t.Errorf("health-sync: exit code %s, want 0: %s", code, out.Stderr)
			}
			want(t, out, 0, 0, "left all checks critical")
		})
	}
}

// awaitLog waits until the container has written a line with the text.
func (l *fixture) awaitLog(t *testing.T, container, text string) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("a line with %q in the container's log", text), func() bool {
		out, _ := l.Try("logs", container)
		return strings.Contains(out.Stdout+out.Stderr, text)
	})
}

// owners lists /consul as a container sees it, with mode and owner.
func (l *fixture) owners(t *testing.T, container string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), dockerengine.Limit)
	defer cancel()
	out, code := dockerengine.Finish(l.Command(ctx, "cp", container+":/consul", "-"))
	if code != 0 {
		t.Fatalf("docker cp: %s", out.Stderr)
	}
	var list []string
	walk(t, []byte(out.Stdout), func(h *tar.Header, _ io.Reader) {
		list = append(list, fmt.Sprintf("%s %04o %d:%d", strings.TrimSuffix(h.Name, "/"), h.Mode&0o7777, h.Uid, h.Gid))
	})
	return list
}

// closedToken: a token of root's is out of health-sync's reach, and it says
// what to change.
func (l *fixture) closedToken(t *testing.T) {
	volume := l.layOut(t, "")
	id := l.Run(t, "create", "--label", l.ID, "--network=none", "--user=5996", "-v", volume.writable(),
		"-e", `CONSUL_ECS_CONFIG_JSON={"bootstrapDir": "/consul", "consulHTTPAddr": "http://127.0.0.1:1",
			"consulLogin": {"enabled": true}, "service": {"port": 1}}`,
		"-e", "ECS_CONTAINER_METADATA_URI_V4=http://"+metadataAddress, l.image, "health-sync", "-start-timeout=0")
	var token bytes.Buffer
	files := []entry{{path: "service-token", mode: 0o640, data: []byte("secret")}}
	if err := writeTar(&token, files, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), dockerengine.Limit)
	defer cancel()
	cmd := l.Command(ctx, "cp", "-", id+":/consul")
	cmd.Stdin = &token
	if out, code := dockerengine.Finish(cmd); code != 0 {
		t.Fatalf("docker cp: %s", out.Stderr)
	}
	out, code := l.Try("start", "--attach", id)
	want(t, out, code, 1, "login is enabled but the service token cannot be read: open /consul/service-token: ",
		"permission denied (running as uid 5996, gid 5996)",
		"run this container as mesh-init's user or with the file's group, or see mesh-init's -file-group")
}

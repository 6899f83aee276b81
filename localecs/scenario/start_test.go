package scenario

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

func TestMain(m *testing.M) {
	host.Dispatch(runtime.Role())
	os.Exit(testkit.Main(m))
}

// newCluster opens a cluster with an image of Consul.
func newCluster(t *testing.T, dir string) *cluster.Cluster {
	t.Helper()
	consul := testkit.Binary("consul")
	if consul == "" {
		testkit.Missing(t, "no consul")
	}
	cluster, err := cluster.Open(cluster.Options{
		Name: "test", Region: "us-east-1", Account: "123456789012", Dir: dir, Log: hclog.NewNullLogger(),
		Images: map[string]runtime.Image{
			"consul": {Name: "consul", Programs: map[string]string{"/bin/consul": consul}},
			"unprivileged": {
				Name: "unprivileged", Programs: map[string]string{"/bin/consul": consul}, User: "1000:1000",
				Volumes: []runtime.Dir{{Path: "/consul/data", UID: 1000, GID: 1000}},
			},
		},
		Observe: func(cluster.Event) {},
	})
	if missing, ok := errors.AsType[*host.MissingError](err); ok {
		testkit.Missing(t, missing.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

// Every local user can read the command line of a process.
func TestCommandLinesDoNotContainTheManagementToken(t *testing.T) {
	t.Parallel()
	token := uuid.NewString()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	dir := t.TempDir()
	if _, _, err := startServer(ctx, newCluster(t, dir), &file.Consul{Image: "consul", Address: "10.42.0.254"},
		token); err != nil {
		t.Fatal(err)
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	servers := 0
	for _, name := range lines {
		line, _ := os.ReadFile(name) // empty for a process that has ended
		if bytes.Contains(line, []byte("-node=consul-server")) {
			servers++
		}
		if bytes.Contains(line, []byte(token)) {
			t.Errorf("%s has the token: %q", name, line)
		}
	}
	if servers == 0 {
		t.Error("no server was found")
	}
	private, _ := filepath.Glob(filepath.Join(dir, "volumes", "consul-server", "*"))
	for _, name := range private {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s, which has the token, has mode %v (%v), want 0700", name, info.Mode(), err)
		}
	}
	if len(private) != 3 {
		t.Errorf("%q, want the directories of the data, of the configuration and of what the scenario adds to it",
			private)
	}
}

// TestServerWithTLSServesIt finds both the server's name and its address in the certificate.
func TestServerWithTLSServesIt(t *testing.T) {
	t.Parallel()
	vpc := newCluster(t, t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	server := &file.Consul{Image: "consul", Address: "10.42.0.254", Datacenter: "dc2", CASecret: "ca"}
	if _, _, err := startServer(ctx, vpc, server, testkit.ManagementToken); err != nil {
		t.Fatal(err)
	}
	for _, port := range []string{"8501", "8503"} {
		raw, err := vpc.Fabric().Infra().DialContext(ctx, "tcp", net.JoinHostPort(server.Address, port))
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		// The CA is in the tasks' secrets only.
		conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
		if err := conn.HandshakeContext(ctx); err != nil {
			t.Fatalf("port %s: %v", port, err)
		}
		for _, name := range []string{"server.dc2.consul", server.Address} {
			if err := conn.ConnectionState().PeerCertificates[0].VerifyHostname(name); err != nil {
				t.Errorf("port %s: %v", port, err)
			}
		}
	}
	if conn, err := vpc.Fabric().Infra().DialContext(ctx, "tcp", net.JoinHostPort(server.Address, "8502")); err == nil {
		conn.Close()
		t.Error("gRPC is served without TLS")
	}
}

func TestServerMayRunAsAnotherUser(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	if _, _, err := startServer(ctx, newCluster(t, t.TempDir()),
		&file.Consul{Image: "unprivileged", Address: "10.42.0.254"}, uuid.NewString()); err != nil {
		t.Fatal(err)
	}
}

// A scenario adds to the server's configuration, and cannot turn its ACLs off.
func TestScenarioAddsToTheServersConfiguration(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	_, client, err := startServer(ctx, newCluster(t, t.TempDir()),
		&file.Consul{Image: "consul", Address: "10.42.0.254", Config: map[string]any{
			"node_meta": map[string]any{"rack": "7"}, "acl": map[string]any{"enabled": false},
		}}, testkit.ManagementToken)
	if err != nil {
		t.Fatal(err)
	}
	// the server updates its own node later
	testkit.Eventually(t, "the node has the meta of the scenario", func() bool {
		node, _, err := client.Catalog().Node("consul-server", (&api.QueryOptions{}).WithContext(ctx))
		return err == nil && node.Node.Meta["rack"] == "7"
	})
	if _, _, err := client.Catalog().Node("consul-server",
		(&api.QueryOptions{Token: uuid.NewString()}).WithContext(ctx)); err == nil ||
		!strings.Contains(err.Error(), "ACL not found") {
		t.Errorf("with an unknown token: %v", err)
	}
}

// A server that is killed, frozen or slowed has afterwards what it had, and is
// found where it was.
func TestServerComesBack(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t, t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	running, client, err := startServer(ctx, cluster, &file.Consul{Image: "consul", Address: "10.42.0.254"},
		testkit.ManagementToken)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.KV().Put(&api.KVPair{Key: "k", Value: []byte("v")}, nil); err != nil {
		t.Fatal(err)
	}
	read := func(patience time.Duration) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		pair, _, err := client.KV().Get("k", (&api.QueryOptions{}).WithContext(ctx))
		if err != nil || pair == nil {
			return "", err
		}
		return string(pair.Value), nil
	}
	for _, c := range []struct {
		name    string
		act     func() (func() error, error)
		answers bool
		want    error
	}{
		{"down", running.Down, false, syscall.ECONNREFUSED},
		{"frozen", running.Freeze, false, context.DeadlineExceeded},
		{"slow", running.Slow, true, nil},
	} {
		end, err := c.act()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		patience := testkit.Patience
		if errors.Is(c.want, context.DeadlineExceeded) {
			patience = time.Second
		}
		if got, err := read(patience); !errors.Is(err, c.want) || (got == "v") != c.answers {
			t.Errorf("while %s: %q, %v; want %v", c.name, got, err, c.want)
		}
		if err := end(); err != nil {
			t.Fatalf("end of %s: %v", c.name, err)
		}
		if err := awaitLeader(ctx, client, running); err != nil {
			t.Fatalf("after %s: %v", c.name, err)
		}
		if got, err := read(testkit.Patience); got != "v" || err != nil {
			t.Errorf("after %s: %q, %v", c.name, got, err)
		}
	}
}

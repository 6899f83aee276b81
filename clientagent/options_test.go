package clientagent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/cli"
)

// TestMistakesAreReportedTogether: all of them, before any request.
func TestMistakesAreReportedTogether(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *fixture) {
		r.options.Config.ConsulHTTPAddr = ""
		r.options.HTTPSCACertPEM = "not PEM"
		r.options.Agent.CACertPEM = "neither"
		r.options.Agent.GossipKey = "c2hvcnQ="
		r.options.Agent.ExtraFiles = []string{"/nonexistent.hcl", os.DevNull, t.TempDir()}
		r.options.Agent.Program = "/nonexistent/consul"
		r.options.Config.BootstrapDir = "/nonexistent"
		r.run()
		err := r.wait()
		if cli.ExitCode(err) != 1 {
			t.Errorf("exit %d: %v", cli.ExitCode(err), err)
		}
		for _, want := range []string{"-consul-http-addr", "CONSUL_HTTPS_CACERT_PEM holds", "CONSUL_CACERT_PEM holds",
			"CONSUL_GOSSIP_ENCRYPTION_KEY", "/nonexistent.hcl", "/dev/null: want a name",
			"-consul-path: exec: \"/nonexistent/consul\"", "directory /nonexistent does not exist"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("not reported: %s in\n%v", want, err)
			}
		}
		if strings.Contains(err.Error(), "c2hvcnQ=") {
			t.Error("the key is in the error")
		}
		if n := strings.Count(err.Error(), "-agent-config-file"); n != 2 {
			t.Errorf("%d of 3 files refused, want 2", n) // consul reads a directory
		}
		r.wantHistory()
	})
}

// TestOwnDirectoryIsCheckedFirst: what is in its place costs no token.
func TestOwnDirectoryIsCheckedFirst(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *fixture) {
		r.put("consul-client", "")
		r.run()
		if err := r.wait(); cli.ExitCode(err) != 1 || !strings.Contains(err.Error(), "the agent's directory") {
			t.Errorf("exit %d: %v", cli.ExitCode(err), err)
		}
		r.wantHistory()
		r.wantFiles("consul-client")
	})
}

// Who may write the directory would configure the agent.
func TestOwnDirectoryThatOthersMayWriteIsRefused(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(path string) error{
		"writable": func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o777)) },
		"link":     func(path string) error { return os.Symlink(filepath.Dir(path), path) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *fixture) {
				if err := plant(filepath.Join(r.options.Config.BootstrapDir, "consul-client")); err != nil {
					t.Fatal(err)
				}
				r.run()
				if err := r.wait(); cli.ExitCode(err) != 1 ||
					!strings.Contains(err.Error(), "or other users may write it") {
					t.Errorf("exit %d: %v", cli.ExitCode(err), err)
				}
				r.wantHistory()
			})
		})
	}
}

func TestWhatNeedsACLs(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *fixture) {
		r.options.Config.ConsulLogin.Enabled = false
		r.options.Agent.AuditLogging, r.options.Agent.TokenReplication = true, true
		r.run()
		err := r.wait()
		if code := cli.ExitCode(err); code != 1 {
			t.Fatalf("exit %d, want 1: %v", code, err)
		}
		for _, want := range []string{"-audit-logging needs ACLs", "-enable-acl-token-replication needs ACLs"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q, want %q in it", err, want)
			}
		}
	})
}

func TestGossipKey(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{gossipKey: true, "MTIzNDU2Nzg5MDEyMzQ1Ng==": true, "c2hvcnQ=": false,
		"%": false, "": false} {
		if got := isGossipKey(key); got != want {
			t.Errorf("%q: %v", key, got)
		}
	}
}

func TestMissingRetryJoinIsAWarning(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *fixture) {
		r.options.Agent.RetryJoin = nil
		r.child.end(0)
		r.run()
		if err := r.wait(); err != nil || r.logged("no retry_join address") != 1 {
			t.Errorf("%v:\n%s", err, r.log)
		}
	})
}

// TestCAFiles: what mesh-init's configuration names on the volume appears
// there, and the login uses the same.
func TestCAFiles(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		rpc, https, named string
		files             map[string]string
		server            string
	}{
		"none":    {"", "", "", map[string]string{}, ""},
		"image's": {"", "", "/etc/ca.pem", map[string]string{}, "/etc/ca.pem"},
		"RPC":     {"R", "", "", map[string]string{"/consul/consul-ca-cert.pem": "R"}, ""},
		"HTTPS": {"", "H", "", map[string]string{"/consul/consul-https-ca-cert.pem": "H"},
			"/consul/consul-https-ca-cert.pem"},
		"both": {"R", "H", "",
			map[string]string{"/consul/consul-ca-cert.pem": "R", "/consul/consul-https-ca-cert.pem": "H"},
			"/consul/consul-https-ca-cert.pem"},
		"both, one name": {"R", "H", "/consul/consul-ca-cert.pem", map[string]string{"/consul/consul-ca-cert.pem": "H"},
			"/consul/consul-ca-cert.pem"},
		"RPC for the name": {"R", "", "/consul/ca.pem",
			map[string]string{"/consul/consul-ca-cert.pem": "R", "/consul/ca.pem": "R"}, "/consul/ca.pem"},
		"HTTPS for the name": {"R", "H", "/consul/tls/../ca.pem",
			map[string]string{"/consul/consul-ca-cert.pem": "R", "/consul/tls/../ca.pem": "H"},
			"/consul/tls/../ca.pem"},
		"name in another image": {"R", "H", "/etc/ca.pem",
			map[string]string{"/consul/consul-ca-cert.pem": "R", "/consul/consul-https-ca-cert.pem": "H"},
			"/consul/consul-https-ca-cert.pem"},
		"a name that looks like ours": {"", "H", "/consul2/ca.pem",
			map[string]string{"/consul/consul-https-ca-cert.pem": "H"}, "/consul/consul-https-ca-cert.pem"},
	} {
		o := Options{Config: &config.Config{BootstrapDir: "/consul/", ConsulCACertFile: tc.named},
			Agent: Agent{CACertPEM: tc.rpc}, HTTPSCACertPEM: tc.https}
		if d := cmp.Diff(tc.files, o.caFiles()); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		if got := o.ServerCAFile(); got != tc.server {
			t.Errorf("%s: the login uses %q, want %q", name, got, tc.server)
		}
	}
}

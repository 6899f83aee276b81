package healthsync

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/cli"
)

func TestReplacedTokenFileIsReadAfterADenial(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"app"}, func(r *fixture) {
		r.login("old", "")
		r.metadata.set(healthOf("HEALTHY"), nil)
		r.agent.token = "new"
		r.run()
		r.advance(500 * time.Millisecond)
		r.wantStatus("app", "absent")
		r.file("service-token", "new\n")
		r.advance(2 * sec)
		r.wantStatus("app", "passing")
		r.term()
		if d := cmp.Diff([]string{"new"}, r.logout.distinct()); d != "" {
			t.Error(d)
		}
	})
}

func TestTokenWhoseFileVanishedIsLoggedOut(t *testing.T) {
	t.Parallel()
	running(t, func(r *fixture) {
		removeFile(t, r, "service-token")
		r.term()
		r.wantStatus("app", "critical")
		r.wantLogOuts("service-secret", "client-secret")
	})
}

func TestServiceTokenIsAwaitedForTenSeconds(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"app"}, func(r *fixture) {
		r.cfg.ConsulLogin.Enabled = true
		r.metadata.set(healthOf("HEALTHY"), nil)
		r.run()
		r.advance(8 * sec)
		r.wantOps()
		r.file("service-token", "late")
		r.advance(sec)
		r.wantStatus("app", "passing")
		r.term()
	})
	inBubble(t, []string{"app"}, func(r *fixture) {
		r.cfg.ConsulLogin.Enabled = true
		r.file("service-token", " \n") // empty is as good as absent
		r.run()
		r.advance(10 * sec)
		<-r.done
		if code := cli.ExitCode(r.err); code != 1 {
			t.Errorf("exit code %d for %v", code, r.err)
		}
		r.wantOps()
	})
}

// TestNothingToSynchroniseIdles: apart from what makes the agent send the proxy's health.
func TestNothingToSynchroniseIdles(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		metadata error
		want     []op
	}{
		"no containers":           {nil, []op{{0, "publish", "web-0f9de17a", ""}}},
		"metadata cannot be read": {errServer, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, []string{"app"}, func(r *fixture) {
				r.login("service-secret", "client-secret")
				r.cfg.HealthSyncContainers = nil
				r.metadata.set(nil, tt.metadata)
				r.run()
				r.advance(time.Hour)
				if took, err := r.term(); err != nil || took != 0 {
					t.Errorf("took %s, %v", took, err)
				}
				r.wantOps(tt.want...)
				if tt.metadata == nil && r.metadata.reads != 1 {
					t.Errorf("%d metadata reads", r.metadata.reads)
				}
				if d := cmp.Diff([]string{"service-secret", "client-secret"}, r.logout.distinct()); d != "" {
					t.Error(d)
				}
			})
		})
	}
}

func removeFile(t *testing.T, r *fixture, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(r.cfg.BootstrapDir, name)); err != nil {
		t.Fatal(err)
	}
}

// A token that is out of reach is no token that is not there: it lives on.
func TestUnreadableTokenIsLogged(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"app"}, func(r *fixture) {
		r.login("service-secret", "")
		if err := os.Mkdir(filepath.Join(r.cfg.BootstrapDir, "client-token"), 0o755); err != nil {
			t.Fatal(err)
		}
		r.run()
		r.advance(sec)
		if _, err := r.term(); err != nil {
			t.Error(err)
		}
		if r.logged("token was not logged out") != 1 {
			t.Errorf("not logged:\n%s", r.log)
		}
	})
	inBubble(t, []string{"app"}, func(r *fixture) {
		r.cfg.ConsulLogin.Enabled = true
		if err := os.Mkdir(filepath.Join(r.cfg.BootstrapDir, "service-token"), 0o755); err != nil {
			t.Fatal(err)
		}
		r.run()
		r.advance(10 * sec)
		<-r.done
		wantFailure(t, r.err, 1, "cannot be read", "-file-group")
	})
}

// TestVolumeThatIsNotMounted: health-sync of a definition of 0.10 has its own token. With
// proxy.mode direct that would keep the proxy's from being renewed.
func TestVolumeThatIsNotMounted(t *testing.T) {
	t.Parallel()
	unmounted := func(mode string, test func(*fixture)) {
		atServers(t, []string{"app"}, func(r *fixture) {
			r.cfg.ConsulLogin.Enabled = true
			r.cfg.Proxy.Mode = mode
			r.metadata.set(map[string]string{"app": "HEALTHY", "consul-dataplane": "HEALTHY"}, nil)
			test(r)
		})
	}
	unmounted(config.ProxyDataplane, func(r *fixture) {
		r.run()
		r.advance(sec)
		r.wantPuts(
			put{0,
				map[string]string{"app": "passing", "consul-dataplane": "passing",
					"sidecar-proxy-consul-dataplane": "passing"}})
		if d := cmp.Diff([]string{"renewed-1"}, r.catalog.presented()); d != "" {
			t.Error(d)
		}
		if _, err := r.end(); err != nil {
			t.Error(err)
		}
		r.wantLogOuts("renewed-1")
	})
	unmounted(config.ProxyDataplane, func(r *fixture) { // the login is answered after TERM
		r.logins.slow = 2 * sec
		r.run()
		r.advance(sec)
		if _, err := r.end(); err != nil {
			t.Error(err)
		}
		r.wantLogOuts("renewed-1")
	})
	unmounted(config.ProxyDataplane, func(r *fixture) { // the first login fails after TERM
		r.logins.slow = 2 * sec
		r.logins.answer = func() error {
			if len(r.logins.made) == 0 && r.logins.calls == 1 {
				return errServer
			}
			return nil
		}
		r.run()
		r.advance(sec)
		if _, err := r.end(); err != nil {
			t.Error(err)
		}
		if d := cmp.Diff([]string{"renewed-1"}, r.catalog.presented()); d != "" {
			t.Error(d)
		}
		r.wantLogOuts("renewed-1")
	})
	unmounted(config.ProxyDataplane, func(r *fixture) { // the metadata fails after the login
		r.logins.answer = func() error {
			r.metadata.set(nil, errServer)
			return nil
		}
		r.run()
		r.advance(4 * time.Minute)
		<-r.done
		if !errors.Is(r.err, errServer) {
			t.Error(r.err)
		}
		r.wantLogOuts("renewed-1")
	})
	unmounted(config.ProxyDataplane, func(r *fixture) { // the file appears after the login
		r.run()
		r.advance(sec)
		r.login("service-secret", "")
		r.metadata.set(map[string]string{"app": "UNHEALTHY", "consul-dataplane": "HEALTHY"}, nil)
		r.advance(sec)
		if _, err := r.end(); err != nil {
			t.Error(err)
		}
		if d := cmp.Diff([]string{"renewed-1"}, r.catalog.presented()); d != "" {
			t.Error(d)
		}
		r.wantLogOuts("service-secret", "renewed-1")
	})
	unmounted(config.ProxyDataplane, func(r *fixture) { // the volume is mounted, and the file is another user's
		if err := os.Mkdir(filepath.Join(r.cfg.BootstrapDir, "service-token"), 0o755); err != nil {
			t.Fatal(err)
		}
		r.run()
		r.advance(10 * sec)
		<-r.done
		wantFailure(t, r.err, 1, "-file-group")
		if n := r.logins.calls; n != 0 {
			t.Errorf("%d logins, want none", n)
		}
	})
	unmounted(config.ProxyDataplane, func(r *fixture) {
		r.logins.answer = func() error { return errServer }
		r.run()
		r.advance(sec)
		<-r.done
		if !errors.Is(r.err, errServer) {
			t.Error(r.err)
		}
	})
	unmounted(config.ProxyDirect, func(r *fixture) {
		r.run()
		r.advance(10 * sec)
		<-r.done
		if code := cli.ExitCode(r.err); code != 1 || len(r.logins.tokens()) > 0 {
			t.Errorf("exit code %d, logins %v", code, r.logins.tokens())
		}
	})
}

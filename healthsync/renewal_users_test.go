package healthsync

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/config"
)

// TestTokenOfConsulDataplaneIsLeftAlone: it takes no other token, and keeps its own until the
// end. health-sync warns, and goes on writing with a token of its own.
func TestTokenOfConsulDataplaneIsLeftAlone(t *testing.T) {
	t.Parallel()
	renewing(t, 10*time.Minute, func(r *fixture) {
		r.cfg.Proxy.Mode = config.ProxyDataplane
		r.run()
		r.advance(time.Hour)
		if n := r.logged("token expires and is not renewed for its other users"); n != 1 {
			t.Errorf("%d warnings:\n%s", n, r.log)
		}
		if got := r.content("service-token"); got != "service-secret" {
			t.Errorf("token is %s", got)
		}
		made := r.logins.tokens()
		if n := len(made); n < 8 || n > 10 {
			t.Fatalf("%d logins in an hour", n)
		}
		for range 6 { // the overlap of the last two may not be over
			if made = r.logins.tokens(); len(r.logout.distinct()) < len(made)-1 {
				r.advance(5 * sec)
			}
		}
		r.wantLogOuts(made[:len(made)-1]...)
		r.metadata.set(map[string]string{"sidecar-proxy": "HEALTHY", "app": "UNHEALTHY"}, nil)
		r.advance(2 * sec)
		presented := r.catalog.presented()
		if last := presented[len(presented)-1]; last != made[len(made)-1] {
			t.Errorf("presented %s, want %s", last, made[len(made)-1])
		}
		r.end()
		r.wantAllLoggedOut("service-secret")
	})
}

func TestTokenOfConsulDataplaneWithoutExpiryIsShared(t *testing.T) {
	t.Parallel()
	renewing(t, 0, func(r *fixture) {
		r.cfg.Proxy.Mode = config.ProxyDataplane
		r.run()
		r.advance(time.Hour)
		if n := r.logged("WARN"); n > 0 {
			t.Errorf("%d warnings:\n%s", n, r.log)
		}
		if made := r.logins.tokens(); len(made) > 0 {
			t.Errorf("logins %v", made)
		}
		r.end()
		r.wantLogOuts("service-secret")
	})
}

// TestTokenOfASeparateLoginIsRenewed: a definition of 0.10 mounts no volume here.
func TestTokenOfASeparateLoginIsRenewed(t *testing.T) {
	t.Parallel()
	renewing(t, 10*time.Minute, func(r *fixture) {
		r.cfg.Proxy.Mode = config.ProxyDataplane
		if err := os.Remove(filepath.Join(r.cfg.BootstrapDir, "service-token")); err != nil {
			t.Fatal(err)
		}
		r.run()
		r.advance(8 * time.Minute)
		if d := cmp.Diff([]string{"renewed-1", "renewed-2"}, r.logins.tokens()); d != "" {
			t.Errorf("logins (-want +got):\n%s", d)
		}
		r.wantLogOuts("renewed-1")
		r.end()
		r.wantAllLoggedOut("renewed-1")
	})
}

// TestGatewayIsRenewedByItsOwnMode, which is not the service's.
func TestGatewayIsRenewedByItsOwnMode(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{config.ProxyDirect: "renewed-1", "": "service-secret"} {
		renewing(t, 10*time.Minute, func(r *fixture) {
			r.cfg.Gateway = &config.Gateway{Kind: "mesh-gateway", Name: "web", Proxy: &config.GatewayProxy{Mode: mode}}
			r.run()
			r.advance(8 * time.Minute)
			if got := r.content("service-token"); got != want {
				t.Errorf("mode %q: token is %s, want %s", mode, got, want)
			}
			r.end()
			r.wantAllLoggedOut("service-secret")
		})
	}
}

// TestAgentGetsTheNewToken: it watches and synchronizes with the tokens of registrations. The
// old one is valid until it has the new one.
func TestAgentGetsTheNewToken(t *testing.T) {
	t.Parallel()
	for name, gateway := range map[string]*config.Gateway{"service": nil,
		"gateway": {Kind: config.KindMeshGateway, Name: "web"}} {
		inBubble(t, []string{"app"}, func(r *fixture) {
			r.login("service-secret", "client-secret")
			r.cfg.Gateway, r.metadata.address = gateway, "10.0.0.9"
			r.logins.life = 10 * time.Minute
			r.metadata.set(healthOf("HEALTHY"), nil)
			refused := 12
			r.agent.answer = func(o op) error {
				if o.Verb != "register" {
					return nil
				}
				if refused--; refused >= 0 {
					return errServer
				}
				return nil
			}
			r.run()
			r.advance(5 * time.Minute)
			for range 150 {
				if r.content("service-token") == "service-secret" {
					r.advance(sec)
				}
			}
			r.advance(50 * sec)
			r.wantLogOuts()
			r.advance(40 * sec)
			r.wantLogOuts("service-secret")
			if d := cmp.Diff(slices.Repeat([]string{"renewed-1"}, 13), r.agent.registrations()); d != "" {
				t.Errorf("%s: registrations (-want +got):\n%s", name, d)
			}
			if n := r.logged("its users did not take it"); n != 1 {
				t.Errorf("%s: %d errors:\n%s", name, n, r.log)
			}
			r.advance(time.Hour)
			made, registered := r.logins.tokens(), r.agent.registrations()
			if d := cmp.Diff(made, registered[12:]); d != "" {
				t.Errorf("%s: registrations (-logins +got):\n%s", name, d)
			}
			r.metadata.stop("app")
			r.term()
			r.wantAllLoggedOut("service-secret")
		})
	}
}

// TestAgentIsNotGivenATokenAfterTERM: the registration of a task that leaves would put it back.
func TestAgentIsNotGivenATokenAfterTERM(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"app"}, func(r *fixture) {
		r.login("service-secret", "")
		r.file("client-token.owner", "client-entrypoint")
		r.stop = 10 * time.Minute
		r.logins.life = 10 * time.Minute
		r.metadata.set(healthOf("HEALTHY"), nil)
		r.run()
		r.advance(5 * time.Minute)
		time.AfterFunc(5*time.Minute, func() { r.metadata.stop("app") })
		if _, err := r.term(); err != nil {
			t.Error(err)
		}
		if n := len(r.agent.registrations()); n > 0 {
			t.Errorf("registered %d times", n)
		}
		if n := len(r.logins.tokens()); n != 1 {
			t.Errorf("%d logins, want one: the applications still use the token", n)
		}
		r.wantAllLoggedOut("service-secret")
	})
}

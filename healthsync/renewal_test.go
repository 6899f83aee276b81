package healthsync

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/config"
)

// renewing runs a test of a task whose tokens live for a life.
func renewing(t *testing.T, life time.Duration, test func(*fixture)) {
	t.Helper()
	atServers(t, []string{"app"}, func(r *fixture) {
		r.login("service-secret", "")
		r.logins.life = life
		test(r)
	})
}

// TestTokenIsRenewedBeforeItExpires: its file is replaced, it is used, and the old one is
// valid for 15 s more.
func TestTokenIsRenewedBeforeItExpires(t *testing.T) {
	t.Parallel()
	renewing(t, 10*time.Minute, func(r *fixture) {
		path := filepath.Join(r.cfg.BootstrapDir, "service-token")
		if err := os.Chmod(path, 0o640); err != nil {
			t.Fatal(err)
		}
		r.run()
		r.advance(6 * time.Minute)
		if got := r.content("service-token"); got != "service-secret" || len(r.logins.tokens()) > 0 {
			t.Errorf("%s is renewed after less than 60 %% of its life", got)
		}
		for r.content("service-token") == "service-secret" {
			r.advance(sec / 2)
		}
		if at := time.Since(r.logout.start); at > 7*time.Minute+6*sec {
			t.Errorf("renewed at %s", at)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode() != 0o640 || r.content("service-token") != "renewed-1" {
			t.Errorf("file has mode %v and %q, %v", info.Mode(), r.content("service-token"), err)
		}
		r.advance(14 * sec)
		r.wantLogOuts()
		r.advance(6 * sec)
		r.wantLogOuts("service-secret")

		r.metadata.set(map[string]string{"sidecar-proxy": "HEALTHY", "app": "UNHEALTHY"}, nil)
		r.advance(2 * sec)
		if d := cmp.Diff([]string{"service-secret", "renewed-1"}, r.catalog.presented()); d != "" {
			t.Errorf("tokens presented (-want +got):\n%s", d)
		}
		r.advance(time.Hour)
		if n := len(r.logins.tokens()); n < 8 || n > 11 {
			t.Errorf("%d logins in 67 min", n)
		}
		if _, err := r.end(); err != nil {
			t.Error(err)
		}
		r.wantAllLoggedOut("service-secret")
		if n := r.logged("token renewed"); n != len(r.logins.tokens()) || r.logged("ERROR")+r.logged("WARN") > 0 {
			t.Errorf("log of %d renewals:\n%s", len(r.logins.tokens()), r.log)
		}
		if last := r.servers.distinct()[0]; last != "web-0f9de17a with "+r.logins.tokens()[len(r.logins.tokens())-1] {
			t.Errorf("deregistered %s", last)
		}
	})
}

// TestRenewalWithAnotherClockThanTheServers: no token is renewed early or late.
func TestRenewalWithAnotherClockThanTheServers(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-4 * time.Minute, 4 * time.Minute} {
		renewing(t, 5*time.Minute, func(r *fixture) {
			r.logins.ahead = ahead
			r.run()
			r.advance(2 * time.Minute)
			early := len(r.logins.tokens())
			r.advance(2 * time.Minute)
			if first := len(r.logins.tokens()); early != 0 || first != 1 {
				t.Errorf("clock %s ahead: %d logins after 2 min, %d after 4", ahead, early, first)
			}
			r.advance(56 * time.Minute)
			if n := len(r.logins.tokens()); n < 15 || n > 21 {
				t.Errorf("clock %s ahead: %d logins in an hour", ahead, n)
			}
			r.end()
		})
	}
}

func TestTokenThatDoesNotExpireIsReadOnce(t *testing.T) {
	t.Parallel()
	renewing(t, 0, func(r *fixture) {
		r.run()
		r.advance(24 * time.Hour)
		if made, reads := r.logins.done(); reads != 1 || len(made) > 0 {
			t.Errorf("%d reads, logins %v", reads, made)
		}
		r.end()
		r.wantLogOuts("service-secret")
	})
}

// TestFailedRenewalIsRepeated until it works, also when the old token has expired: the
// relay takes the new one when it is there.
func TestFailedRenewalIsRepeated(t *testing.T) {
	t.Parallel()
	renewing(t, 10*time.Minute, func(r *fixture) {
		attempts := 0
		r.logins.answer = func() error { attempts++; return errDenied }
		r.run()
		r.advance(12 * time.Minute)
		if attempts < 6 || attempts > 30 {
			t.Errorf("%d attempts in 5 to 6 min", attempts)
		}
		if n := r.logged("[ERROR]"); n != 2 || r.logged("the login failed") != 1 || r.logged("it has expired") != 1 {
			t.Errorf("%d errors, want one for the login and one for the expiry:\n%s", n, r.log)
		}
		r.logins.change(func() { r.logins.answer = nil })
		r.advance(90 * sec)
		if got := r.content("service-token"); got != "renewed-1" {
			t.Errorf("token is %s", got)
		}
		r.end()
		r.wantAllLoggedOut("service-secret")
	})
}

// TestUnwritableVolumeIsReportedOnce, and no login is made for nothing.
func TestUnwritableVolumeIsReportedOnce(t *testing.T) {
	t.Parallel()
	renewing(t, 10*time.Minute, func(r *fixture) {
		// As root writes into any directory, the volume has another fault: it is gone.
		moved := r.cfg.BootstrapDir + "-moved"
		r.run()
		r.advance(sec)
		if err := os.Rename(r.cfg.BootstrapDir, moved); err != nil {
			t.Fatal(err)
		}
		r.advance(8 * time.Minute)
		if n := r.logged("its file cannot be replaced"); n != 1 || len(r.logins.tokens()) > 0 {
			t.Errorf("%d lines, logins %v:\n%s", n, r.logins.tokens(), r.log)
		}
		if err := os.Rename(moved, r.cfg.BootstrapDir); err != nil {
			t.Fatal(err)
		}
		r.advance(90 * sec)
		if got := r.content("service-token"); got != "renewed-1" {
			t.Errorf("token is %s:\n%s", got, r.log)
		}
		r.end()
		r.wantAllLoggedOut("service-secret")
	})
}

// TestTokenOfAnotherProcessIsTakenOver: mesh-init has run again.
func TestTokenOfAnotherProcessIsTakenOver(t *testing.T) {
	t.Parallel()
	for mode, ended := range map[string][]string{config.ProxyDirect: {"service-secret"}, config.ProxyDataplane: nil} {
		renewing(t, 10*time.Minute, func(r *fixture) {
			r.cfg.Proxy.Mode = mode
			r.run()
			r.advance(5 * time.Minute)
			r.file("service-token", "mesh-init's")
			r.advance(5 * time.Minute)
			r.wantLogOuts(ended...)
			if len(r.logins.tokens()) > 0 {
				t.Errorf("renewed after %v, too early for the new token", r.logins.tokens())
			}
			r.metadata.set(nil, nil)
			r.advance(sec)
			if d := cmp.Diff([]string{"service-secret", "mesh-init's"}, r.catalog.presented()); d != "" {
				t.Errorf("tokens presented (-want +got):\n%s", d)
			}
			r.end()
			r.wantLogOuts(append(ended, "mesh-init's")...)
		})
	}
}

// TestTokenReplacedDuringTheLogin: the file has the other process's, and ours ends.
func TestTokenReplacedDuringTheLogin(t *testing.T) {
	t.Parallel()
	renewing(t, 10*time.Minute, func(r *fixture) {
		r.logins.answer = func() error { r.file("service-token", "mesh-init's"); return nil }
		r.run()
		r.advance(8 * time.Minute)
		if got := r.content("service-token"); got != "mesh-init's" {
			t.Errorf("token is %s", got)
		}
		r.wantAllLoggedOut("service-secret")
		r.end()
		r.wantAllLoggedOut("mesh-init's")
	})
}

// TestDeletedTokenIsReplaced: health-sync started again, and Consul does not know the
// token any more.
func TestDeletedTokenIsReplaced(t *testing.T) {
	t.Parallel()
	renewing(t, 10*time.Minute, func(r *fixture) {
		r.logins.gone = true
		r.run()
		r.advance(6 * sec)
		if got := r.content("service-token"); got != "renewed-1" {
			t.Errorf("token is %s:\n%s", got, r.log)
		}
		r.end()
		r.wantAllLoggedOut("service-secret")
	})
}

// A restore of Consul from an older snapshot takes the token away, and every write then
// fails.
func TestTokenDeletedLaterIsReplaced(t *testing.T) {
	t.Parallel()
	renewing(t, 0, func(r *fixture) {
		r.run()
		r.advance(time.Minute)
		r.logins.change(func() { r.logins.gone = true })
		r.catalog.setAnswer(func(put) error {
			if r.content("service-token") == "service-secret" {
				return api.StatusError{Code: http.StatusForbidden, Body: "ACL not found"}
			}
			return nil
		})
		r.catalog.lose()
		r.advance(time.Minute)
		if got := r.content("service-token"); got != "renewed-1" {
			t.Errorf("token is %s:\n%s", got, r.log)
		}
		r.end()
		r.wantAllLoggedOut("service-secret")
	})
}

func TestUnreadableLifeIsReadLater(t *testing.T) {
	t.Parallel()
	renewing(t, 10*time.Minute, func(r *fixture) {
		r.logins.unread = errServer
		r.run()
		r.advance(2 * time.Minute)
		if n := r.logged("its expiration could not be read"); n != 1 {
			t.Errorf("%d lines:\n%s", n, r.log)
		}
		r.logins.change(func() { r.logins.unread = nil })
		r.advance(9 * time.Minute)
		if n := len(r.logins.tokens()); n != 1 {
			t.Errorf("%d logins", n)
		}
		r.end()
		r.wantAllLoggedOut("service-secret")
	})
}

// TestTermDuringTheLogin: its token comes too late to be used, and is logged out.
func TestTermDuringTheLogin(t *testing.T) {
	t.Parallel()
	renewing(t, 10*time.Minute, func(r *fixture) {
		r.logins.slow = 8 * sec
		r.run()
		for !r.logins.requested() {
			r.advance(sec)
		}
		took, err := r.end()
		wantEnd(t, took, err, 6*sec, 8*sec)
		if got := r.content("service-token"); got != "service-secret" {
			t.Errorf("token is %s", got)
		}
		if d := cmp.Diff([]string{"service-secret", "renewed-1"}, r.logout.distinct()); d != "" {
			t.Error(d)
		}
	})
}

// TestTermWhileTheFileIsReplaced: whichever of the two is first, no token is left.
func TestTermWhileTheFileIsReplaced(t *testing.T) {
	t.Parallel()
	for range 100 {
		renewing(t, 10*time.Minute, func(r *fixture) {
			deregistered := make(chan struct{})
			r.servers.answer = func(string) error { close(deregistered); return nil }
			r.logins.answer = func() error { <-deregistered; return nil }
			r.run()
			for !r.logins.requested() {
				r.advance(sec)
			}
			r.end()
			out := r.logout.distinct()
			slices.Sort(out)
			if d := cmp.Diff([]string{"renewed-1", "service-secret"}, slices.Compact(out)); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestLoginThatHangsAtTheEnd does not keep the task past its stop timeout.
func TestLoginThatHangsAtTheEnd(t *testing.T) {
	t.Parallel()
	renewing(t, 10*time.Minute, func(r *fixture) {
		r.logins.slow = time.Hour
		r.run()
		r.advance(8 * time.Minute)
		took, err := r.end()
		if err != nil || took > 27*sec {
			t.Errorf("took %s, %v", took, err)
		}
		if n := r.logged("a login was not answered in time"); n != 1 {
			t.Errorf("%d lines:\n%s", n, r.log)
		}
		r.advance(time.Hour) // the bubble waits for the login's end
	})
}

// TestTermInTheOverlap: both tokens are valid then.
func TestTermInTheOverlap(t *testing.T) {
	t.Parallel()
	renewing(t, 10*time.Minute, func(r *fixture) {
		r.run()
		for r.content("service-token") == "service-secret" {
			r.advance(sec)
		}
		r.end()
		if d := cmp.Diff([]string{"renewed-1", "service-secret"}, r.logout.distinct()); d != "" {
			t.Error(d)
		}
	})
}

// TestFailedLogOutOfAReplacedTokenIsRepeated: it is logged once.
func TestFailedLogOutOfAReplacedTokenIsRepeated(t *testing.T) {
	t.Parallel()
	renewing(t, 10*time.Minute, func(r *fixture) {
		failures := 3
		r.logout.answer = func(string) error {
			if failures--; failures >= 0 {
				return errors.New("no leader")
			}
			return nil
		}
		r.run()
		r.advance(9 * time.Minute)
		if warned, done := r.logged("replaced token not logged out"),
			r.logged("replaced token logged out"); warned != 1 || done != 1 {
			t.Errorf("%d warnings, %d logouts:\n%s", warned, done, r.log)
		}
		r.end()
		r.wantAllLoggedOut("service-secret")
	})
}

package healthsync

import (
	"net/http"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/internal/cli"
)

// TestEndWithAnExpiredToken logs in once, and logs that token out, too: a task that cannot
// write critical takes traffic until the controller acts.
func TestEndWithAnExpiredToken(t *testing.T) {
	t.Parallel()
	unknown := api.StatusError{Code: http.StatusForbidden, Body: "ACL not found"}
	for name, tc := range map[string]struct {
		login func() error
		exit  int
	}{
		"":             {nil, 0},
		"login fails":  {func() error { return errServer }, 3},
		"login denied": {func() error { return errDenied }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atServers(t, []string{"app"}, func(r *fixture) {
				r.login("service-secret", "")
				r.run()
				r.advance(sec)
				r.logins.change(func() { r.logins.answer = tc.login })
				r.catalog.setToken(func(token string) error {
					if token == "service-secret" {
						return unknown
					}
					return nil
				})
				_, err := r.end()
				if cli.ExitCode(err) != tc.exit {
					t.Errorf("exit code %d for %v, want %d", cli.ExitCode(err), err, tc.exit)
				}
				if n := r.logins.calls; n != 1 {
					t.Errorf("%d logins, want 1", n)
				}
				r.wantAllLoggedOut("service-secret")
				if tc.login != nil {
					return
				}
				if got := r.catalog.checks["app"]; got != "critical" {
					t.Errorf("the check is %s, want critical", got)
				}
			})
		})
	}
}

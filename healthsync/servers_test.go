package healthsync

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// statuses returns the statuses of the checks of a service and its proxy.
func statuses(app, service, proxy string) map[string]string {
	return map[string]string{"app": app, "consul-dataplane": service, "sidecar-proxy-consul-dataplane": proxy}
}

func TestStatusesWithoutAnAgent(t *testing.T) {
	t.Parallel()
	const passing, critical = "passing", "critical"
	aggregate := func(status string) map[string]string {
		return map[string]string{"consul-dataplane": status, "sidecar-proxy-consul-dataplane": status}
	}
	for name, tc := range map[string]struct {
		containers []string
		health     map[string]string
		want       map[string]string
	}{
		"none":                     {nil, map[string]string{"sidecar-proxy": "HEALTHY"}, aggregate(passing)},
		"none, and no proxy":       {nil, nil, aggregate(critical)},
		"a proxy without a result": {nil, map[string]string{"sidecar-proxy": ""}, aggregate(critical)},
		"one healthy": {[]string{"app"}, map[string]string{"sidecar-proxy": "HEALTHY", "app": "HEALTHY"},
			statuses(passing, passing, passing)},
		"one unhealthy": {[]string{"app"}, map[string]string{"sidecar-proxy": "HEALTHY", "app": "UNHEALTHY"},
			statuses(critical, critical, critical)},
		"one unknown": {[]string{"app"}, map[string]string{"sidecar-proxy": "HEALTHY", "app": "UNKNOWN"},
			statuses(critical, critical, critical)},
		"one without health check": {[]string{"app"}, map[string]string{"sidecar-proxy": "HEALTHY", "app": ""},
			statuses(critical, critical, critical)},
		"one missing": {[]string{"app"}, map[string]string{"sidecar-proxy": "HEALTHY"},
			statuses(critical, critical, critical)},
		"proxy missing": {[]string{"app"}, map[string]string{"app": "HEALTHY"},
			statuses(passing, critical, critical)},
		"proxy and another missing": {[]string{"app"}, nil, statuses(critical, critical, critical)},
		"consul-dataplane": {[]string{"app", "consul-dataplane"},
			map[string]string{"consul-dataplane": "HEALTHY", "app": "HEALTHY"}, statuses(passing, passing, passing)},
		"two healthy": {[]string{"app", "side"},
			map[string]string{"sidecar-proxy": "HEALTHY", "app": "HEALTHY", "side": "HEALTHY"},
			map[string]string{"app": passing, "side": passing, "consul-dataplane": passing,
				"sidecar-proxy-consul-dataplane": passing}},
		"one of two unhealthy": {[]string{"app", "side"},
			map[string]string{"sidecar-proxy": "HEALTHY", "app": "HEALTHY", "side": "UNHEALTHY"},
			map[string]string{"app": passing, "side": critical, "consul-dataplane": critical,
				"sidecar-proxy-consul-dataplane": critical}},
		"one of two missing": {[]string{"app", "side"}, map[string]string{"sidecar-proxy": "HEALTHY", "app": "HEALTHY"},
			map[string]string{"app": passing, "side": critical, "consul-dataplane": critical,
				"sidecar-proxy-consul-dataplane": critical}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atServers(t, tc.containers, func(r *fixture) {
				r.metadata.set(tc.health, nil)
				r.run()
				r.advance(10500 * time.Millisecond)
				// One write of all, and none while nothing changes.
				r.wantPuts(put{0, tc.want})
				if _, err := r.end(); err != nil {
					t.Error(err)
				}
				all := map[string]string{}
				for check := range tc.want {
					all[check] = critical
				}
				r.wantPuts(put{10500 * time.Millisecond, all})
			})
		})
	}
}

// TestChangesWithoutAnAgent: what changes is in one write, and what does not is in none.
func TestChangesWithoutAnAgent(t *testing.T) {
	t.Parallel()
	atServers(t, []string{"app"}, func(r *fixture) {
		r.run()
		r.advance(500 * time.Millisecond)
		r.wantPuts(put{0, statuses("passing", "passing", "passing")})
		for i, step := range []struct{ health, want map[string]string }{
			{map[string]string{"sidecar-proxy": "HEALTHY", "app": "UNHEALTHY"},
				statuses("critical", "critical", "critical")},
			{map[string]string{"sidecar-proxy": "HEALTHY", "app": "HEALTHY"},
				statuses("passing", "passing", "passing")},
			{map[string]string{"app": "HEALTHY"},
				map[string]string{"consul-dataplane": "critical", "sidecar-proxy-consul-dataplane": "critical"}},
			{map[string]string{"sidecar-proxy": "HEALTHY", "app": "HEALTHY"},
				map[string]string{"consul-dataplane": "passing", "sidecar-proxy-consul-dataplane": "passing"}},
		} {
			r.metadata.set(step.health, nil)
			r.advance(sec)
			r.wantPuts(put{time.Duration(i+1) * sec, step.want})
		}
		if n := r.logged("check status changed"); n != 3+3+3+2+2 {
			t.Errorf("%d lines, want one for each change:\n%s", n, r.log)
		}
		r.end()
	})
}

func TestFailedWriteIsRepeatedAfterASecond(t *testing.T) {
	t.Parallel()
	atServers(t, []string{"app"}, func(r *fixture) {
		r.catalog.setAnswer(func(p put) error {
			if p.At < sec {
				return errServer
			}
			return nil
		})
		r.run()
		r.advance(750 * time.Millisecond)
		if n := r.logged("check status changed"); n != 0 {
			t.Errorf("%d lines about changes that Consul did not take:\n%s", n, r.log)
		}
		r.advance(sec)
		all := statuses("passing", "passing", "passing")
		r.wantPuts(put{0, all}, put{sec, all})
		if changed, failed := r.logged("check status changed"),
			r.logged("check write failed"); changed != 3 || failed != 3 {
			t.Errorf("%d changes and %d failures logged, want 3 and 3:\n%s", changed, failed, r.log)
		}
		r.end()
	})
}

// TestLastWriteIsMarked: what another process has deregistered stays so after TERM.
func TestLastWriteIsMarked(t *testing.T) {
	t.Parallel()
	atServers(t, []string{"app"}, func(r *fixture) {
		r.run()
		r.advance(sec / 2)
		r.catalog.recorded()
		if n := r.catalog.lastUpdates(); n != 0 {
			t.Errorf("%d updates before the end are marked as the last", n)
		}
		r.end()
		if n := r.catalog.lastUpdates(); n != 3+3 { // and those that are read back
			t.Errorf("%d updates are marked as the last, want 6", n)
		}
	})
}

// TestDeregisteredTaskIsRestored: at the next refresh.
func TestDeregisteredTaskIsRestored(t *testing.T) {
	t.Parallel()
	atServers(t, []string{"app"}, func(r *fixture) {
		r.run()
		r.advance(sec / 2)
		r.catalog.recorded()
		r.catalog.lose()
		r.advance(30 * sec)
		r.wantPuts(put{30 * sec, statuses("passing", "passing", "passing")})
		if n := r.logged("consul had lost the check, registered it again"); n != 3 {
			t.Errorf("%d lines:\n%s", n, r.log)
		}
		if got := r.catalog.version; got != "v9.8.7" {
			t.Errorf("registered with version %q, want v9.8.7", got)
		}
		r.end()
	})
}

// TestReadinessOfAProxyWithoutHealthCheck: two answers in a row may be missed, for ECS
// never has a result.
func TestReadinessOfAProxyWithoutHealthCheck(t *testing.T) {
	t.Parallel()
	atServers(t, nil, func(r *fixture) {
		var failures atomic.Int64 // of the next looks
		var looks []string
		r.serves = func(_ context.Context, port int, path string) error {
			if port != 22000 || path != "/ready" {
				looks = append(looks, path)
			}
			if failures.Add(-1) >= 0 {
				return errRefused
			}
			return nil
		}
		r.metadata.set(map[string]string{"sidecar-proxy": ""}, nil)
		aggregates := func(status string) map[string]string {
			return map[string]string{"consul-dataplane": status, "sidecar-proxy-consul-dataplane": status}
		}
		failures.Store(1)
		r.run()
		r.advance(500 * time.Millisecond) // in which an unready proxy is asked more often
		r.wantPuts(put{0, aggregates("critical")}, put{200 * time.Millisecond, aggregates("passing")})
		failures.Store(2)
		r.advance(5 * sec)
		r.wantPuts()
		failures.Store(3)
		r.advance(5 * sec)
		puts := r.catalog.recorded()
		if len(puts) != 2 || puts[0].Checks["consul-dataplane"] != "critical" ||
			puts[1].Checks["consul-dataplane"] != "passing" || puts[1].At-puts[0].At != startupTick {
			t.Errorf("writes %v", puts)
		}
		if len(looks) > 0 {
			t.Errorf("looked at %v", looks)
		}
		r.end()
	})
}

// TestEndWithoutAnAgent: critical in one write, which stays; then the end of the proxy,
// the service, the token.
func TestEndWithoutAnAgent(t *testing.T) {
	t.Parallel()
	for name, login := range map[string]bool{"with login": true, "without login": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atServers(t, []string{"app"}, func(r *fixture) {
				want := "web-0f9de17a with "
				if login {
					r.login("service-secret", "another task's")
					want += "service-secret"
				}
				r.run()
				r.advance(500 * time.Millisecond)
				r.catalog.recorded()
				r.servers.answer = func(string) error {
					if running := time.Since(r.servers.start); running < 3500*time.Millisecond {
						t.Errorf("deregistered at %s, before the proxy had stopped", running)
					}
					r.wantLogOuts()
					return nil
				}
				time.AfterFunc(sec, func() { r.metadata.stop("app") })
				time.AfterFunc(3*sec, func() { r.metadata.stop("sidecar-proxy") })
				took, err := r.term()
				wantEnd(t, took, err, 3*sec, 4*sec)
				r.wantPuts(put{500 * time.Millisecond, statuses("critical", "critical", "critical")})
				if r.logged("left all checks critical: task_id=0f9de17a checks=3") != 1 {
					t.Errorf("log:\n%s", r.log)
				}
				if d := cmp.Diff([]string{want}, r.servers.distinct()); d != "" {
					t.Errorf("deregistered (-want +got):\n%s", d)
				}
				if login {
					r.wantLogOuts("service-secret")
				} else {
					r.wantLogOuts()
				}
			})
		})
	}
}

// TestUnlistedProxyCountsAsStopped, as in 0.10.
func TestUnlistedProxyCountsAsStopped(t *testing.T) {
	t.Parallel()
	atServers(t, nil, func(r *fixture) {
		r.run()
		r.advance(sec)
		r.metadata.set(nil, nil)
		if took, err := r.term(); err != nil || took > sec {
			t.Errorf("took %s, %v", took, err)
		}
	})
}

// TestEndStaysInsideTheStopTimeout, whatever fails.
func TestEndStaysInsideTheStopTimeout(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		login       bool
		fail        func(*fixture)
		exit        int
		least, most time.Duration
		text        string
	}{
		"metadata unreachable": {true, func(r *fixture) { r.metadata.set(nil, errors.New("unreachable")) }, 0, 22 * sec,
			24 * sec, ""},
		"proxy does not stop": {true, func(*fixture) {}, 0, 22 * sec, 24 * sec, ""},
		"servers down": {true, func(r *fixture) {
			r.catalog.setAnswer(func(put) error { return errRefused })
			r.servers.answer = func(string) error { return errRefused }
			r.logout.answer = func(string) error { return errRefused }
		}, 3, 26 * sec, 27 * sec, "stay in Consul until the controller removes them"},
		"servers hang, no login": {false, func(r *fixture) {
			r.catalog.setAnswer(func(put) error { return errHang })
			r.servers.answer = func(string) error { return errHang }
		}, 3, 26 * sec, 27 * sec, "write critical"},
		// Critical is no more than an attempt then, and the task leaves all the same.
		"servers hang for 20 s, no login": {false, func(r *fixture) {
			r.metadata.stop("app", "sidecar-proxy")
			r.catalog.setAnswer(func(put) error { return errHang })
		}, 3, 17 * sec, 19 * sec, "write critical"},
		"deregistration refused": {true, func(r *fixture) {
			r.metadata.stop("app", "sidecar-proxy")
			r.servers.answer = func(string) error { return errDenied }
		}, 3, 0, sec, "deregister services"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atServers(t, []string{"app"}, func(r *fixture) {
				if tc.login {
					r.login("service-secret", "")
				}
				r.run()
				r.advance(sec)
				tc.fail(r)
				took, err := r.term()
				if took < tc.least || took > tc.most {
					t.Errorf("took %s, want %s to %s", took, tc.least, tc.most)
				}
				wantFailure(t, err, tc.exit, tc.text)
				if got := r.servers.distinct(); !slices.Contains(got,
					"web-0f9de17a with "+map[bool]string{true: "service-secret"}[tc.login]) {
					t.Errorf("deregistered %v", got)
				}
			})
		})
	}
}

// TestStaticTokenIsNotLoggedOut: the Consul environment's token takes the place of a login,
// unless mesh-init has logged in all the same.
func TestStaticTokenIsNotLoggedOut(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{"": "", "service-secret": "service-secret"} {
		atServers(t, nil, func(r *fixture) {
			r.static = true
			r.cfg.ConsulLogin.Enabled = true
			r.file("service-token", file)
			r.run()
			r.advance(sec)
			if _, err := r.end(); err != nil {
				t.Error(err)
			}
			if d := cmp.Diff([]string{want}, r.catalog.presented()); d != "" {
				t.Errorf("tokens presented (-want +got):\n%s", d)
			}
			if want == "" {
				r.wantLogOuts()
			} else {
				r.wantLogOuts(want)
			}
		})
	}
}

// TestTermBeforeTheTokenWithoutAnAgent ends at once: there is nothing to wait for.
func TestTermBeforeTheTokenWithoutAnAgent(t *testing.T) {
	t.Parallel()
	atServers(t, nil, func(r *fixture) {
		r.cfg.ConsulLogin.Enabled = true
		r.run()
		r.advance(sec)
		if took, err := r.term(); err != nil || took != 0 {
			t.Errorf("took %s, %v", took, err)
		}
		r.wantPuts()
		r.wantLogOuts()
	})
}

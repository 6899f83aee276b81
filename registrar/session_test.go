package registrar

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/workload"
)

func TestHasSessionChecks(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"": false, "nightly": false, "1.20.1": false, "1.20.6": false, "1.21.0": true, "1.22.2": true, "1.22.2+ent": true, "2.0.0": true, "0.30.0": false,
	} {
		if got := hasSessionChecks(version); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}

// boundServers are servers with session checks, and a task with a check for each service.
func boundServers(t *testing.T) (s *servers, c *catalog, w workload.Workload, set func(status string, refresh bool) []Result) {
	s = newServers(t)
	s.version = "1.22.2"
	c = s.registrar(t).(*catalog)
	w = catalogWorkload(t, func(*config.Config) {})
	return s, c, w, func(status string, refresh bool) []Result {
		t.Helper()
		var updates []Update
		for _, check := range w.SyncChecks {
			updates = append(updates, Update{Check: check, Status: status, Output: "fine", Refresh: refresh})
		}
		results := c.Set(context.Background(), "tok", w, updates)
		for _, check := range w.SyncChecks {
			s.checks[check.ID] = health{status, "fine"}
		}
		return results
	}
}

const (
	creates = "PUT /v1/session/create?ns=ns&partition=part tok"
	renews  = "PUT /v1/session/renew/s1?ns=ns&partition=part tok"
)

// TestSessionRequests: a task begins a session when it is in traffic, in the same write as
// its first passing check, renews it without a write, and ends it at the end.
func TestSessionRequests(t *testing.T) {
	t.Parallel()
	s, c, w, set := boundServers(t)
	set("critical", false)
	s.want(t, registers)
	set("passing", false)
	body := string(s.bodies[2])
	for _, id := range []string{"web-abc123:session", "web-abc123-sidecar-proxy:session"} {
		if !strings.Contains(body, `"CheckID":"`+id+`"`) {
			t.Errorf("no check %s in %s", id, body)
		}
		s.checks[id] = health{"passing", ""}
	}
	if name := `"SessionName":"` + c.lease.name + `"`; !strings.HasPrefix(c.lease.name, "web-abc123-") || strings.Count(body, name) != 2 {
		t.Errorf("want twice %s in %s", name, body)
	}
	s.want(t, readsVersions, creates, registers)
	if d := c.Refresh(); d < 13*time.Second || d > 17*time.Second {
		t.Errorf("refresh every %s", d)
	}
	const staleReads = "PUT /v1/txn?ns=ns&partition=part&stale= tok"
	set("passing", true)
	s.want(t, staleReads) // it is too young to be renewed
	c.lease.renewed = time.Now().Add(-time.Minute)
	set("passing", true)
	s.want(t, staleReads, renews)
	set("critical", false) // as at the end: whatever becomes of the session
	s.want(t, registers)
	if err := c.Deregister(context.Background(), "tok", w); err != nil {
		t.Error(err)
	}
	s.want(t, "PUT /v1/catalog/deregister tok", "PUT /v1/catalog/deregister tok", "PUT /v1/session/destroy/s1?ns=ns&partition=part tok")
}

// TestSessionAnswers: what the servers answer about the session decides about the results
// and the next request.
func TestSessionAnswers(t *testing.T) {
	t.Parallel()
	const denied = "Permission denied: token with AccessorID 'x' lacks permission 'session:write' on \"n\""
	for name, tc := range map[string]struct {
		path    string
		status  int
		body    string
		held    bool // there is a session before
		refused bool // no session is asked for again for minutes
		failed  bool // the refresh failed
		renewed bool // there is another session after
	}{
		"creation denied":           {"/v1/session/create", http.StatusForbidden, denied, false, true, false, false},
		"time to live refused":      {"/v1/session/create", http.StatusInternalServerError, "Invalid Session TTL '15000000000', must be between [30s=24h0m0s]", false, true, false, false},
		"creation fails":            {"/v1/session/create", http.StatusInternalServerError, "No cluster leader", false, false, true, false},
		"renewal denied":            {"/v1/session/renew/s1", http.StatusForbidden, denied, true, true, false, false},
		"renewal fails":             {"/v1/session/renew/s1", http.StatusInternalServerError, "No cluster leader", true, false, true, false},
		"session ended":             {"/v1/session/renew/s1", http.StatusNotFound, "Session id 's1' not found", true, false, false, true},
		"token unknown for a while": {"/v1/session/renew/s1", http.StatusForbidden, "ACL not found", true, false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c, w, set := boundServers(t)
			if tc.held {
				set("passing", false)
				for _, id := range sessionCheckIDs(w) {
					s.checks[id] = health{"passing", ""}
				}
				c.lease.renewed = time.Time{}
			} else {
				set("critical", false)
			}
			s.refusal = map[string]answer{tc.path: {tc.status, tc.body}}
			before := c.lease.name
			for _, check := range w.SyncChecks {
				s.checks[check.ID] = health{"passing", "fine"}
			}
			result := set("passing", true)[0]
			if failed := result.Err != nil; failed != tc.failed {
				t.Errorf("error %v", result.Err)
			}
			if refused := time.Now().Before(c.lease.retry); refused != tc.refused {
				t.Errorf("refused: %v", refused)
			}
			if (result.Unbound != nil) != (c.lease.id == "") {
				t.Errorf("unbound %v with session %q", result.Unbound, c.lease.id)
			}
			if renewed := before != "" && c.lease.name != before; renewed != tc.renewed {
				t.Errorf("sessions %q, then %q", before, c.lease.name)
			}
			removed := strings.Count(strings.Join(s.requests, "\n"), "/v1/catalog/deregister")
			if want := map[bool]int{true: 2}[tc.held && tc.refused]; removed != want {
				t.Errorf("%d checks were removed, want %d", removed, want)
			}
		})
	}
}

// TestSessionCheckIsWrittenAgain: a session check that is lost or critical comes back with
// the session that is there.
func TestSessionCheckIsWrittenAgain(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(map[string]health, string){
		"lost":     func(checks map[string]health, id string) { delete(checks, id) },
		"critical": func(checks map[string]health, id string) { checks[id] = health{"critical", ""} },
	} {
		s, c, w, set := boundServers(t)
		set("passing", false)
		for _, id := range sessionCheckIDs(w) {
			s.checks[id] = health{"passing", ""}
		}
		harm(s.checks, "web-abc123:session")
		before := c.lease.name
		s.requests, s.bodies = nil, nil
		set("passing", true)
		last := string(s.bodies[len(s.bodies)-1])
		if strings.Count(last, `"SessionName":"`+before+`"`) != 2 {
			t.Errorf("%s: wrote %s", name, last)
		}
	}
}

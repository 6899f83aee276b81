package healthsync

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

// counted is a task at servers whose requests are counted. Its metadata are steady, until its
// containers stop.
type counted struct {
	*fixture
	s        *sessions
	requests atomic.Int64
	writes   atomic.Int64
	fail     atomic.Pointer[func(*http.Request) (*http.Response, error)]
}

// inCounted runs a test of a task with login, with or without a session.
func inCounted(t *testing.T, session bool, test func(c *counted)) {
	t.Helper()
	atServers(t, []string{"app"}, func(r *fixture) {
		c := &counted{fixture: r, s: newSessions(1)}
		if !session {
			c.s.version = "1.20.1"
		}
		client, err := consulutil.NewClient(consulutil.Options{
			Address: "10.0.0.1:8500",
			Wrap:    func(http.RoundTripper) http.RoundTripper { return testkit.RoundTripper(c.serve) },
		})
		if err != nil {
			t.Fatal(err)
		}
		r.registrar = registrar.New(r.cfg, client)
		r.login("service-secret", "")
		r.logout.answer = func(string) error {
			_, err := client.ACL().Logout(nil)
			return err
		}
		r.accepts = func(context.Context, string) error { return nil }
		test(c)
	})
}

func (c *counted) serve(r *http.Request) (*http.Response, error) {
	fail := c.fail.Load()
	if fail == nil {
		c.count(r)
		return c.s.RoundTrip(r)
	}
	answer, err := (*fail)(r)
	if answer == nil && err == nil {
		c.count(r)
		return c.s.RoundTrip(r)
	}
	if !consulutil.Unreachable(err) {
		c.count(r)
	}
	return answer, err
}

func (c *counted) count(r *http.Request) {
	c.requests.Add(1)
	switch testkit.Kind(r) {
	case "catalog/register", "catalog/deregister", "session/destroy", "session/create", "acl/logout":
		c.writes.Add(1)
	}
}

// breaks makes the servers fail.
func (c *counted) breaks(fail func(*http.Request) (*http.Response, error)) { c.fail.Store(&fail) }

// failures returns the ways in which all servers fail.
func failures() map[string]func(*http.Request) (*http.Response, error) {
	return map[string]func(*http.Request) (*http.Response, error){
		"500":       testkit.Refused(http.StatusInternalServerError, "rpc error"),
		"429":       testkit.Refused(http.StatusTooManyRequests, "Your IP is issuing too many requests"),
		"no leader": testkit.NoLeader,
		"writes fail": testkit.Refused(http.StatusInternalServerError, "No cluster leader",
			"catalog/register", "session/renew", "session/create"),
		"refused": testkit.Refuse,
		"hang":    testkit.Hang,
	}
}

// TestFailureIsCheap: a task whose servers fail sends at most three times its idle requests.
func TestFailureIsCheap(t *testing.T) {
	t.Parallel()
	for _, session := range []bool{true, false} {
		for name, fail := range failures() {
			t.Run(name+map[bool]string{true: " with a session"}[session], func(t *testing.T) {
				t.Parallel()
				inCounted(t, session, func(c *counted) {
					c.run()
					c.advance(time.Minute)
					before := c.requests.Load()
					c.advance(90 * sec)
					idle := c.requests.Load() - before
					c.breaks(fail)
					before = c.requests.Load()
					c.advance(90 * sec)
					failing := c.requests.Load() - before
					c.breaks(fail)
					t.Logf("%d requests in 90 s, %d before", failing, idle)
					if failing > 3*idle {
						t.Errorf("%d requests, more than three times %d", failing, idle)
					}
					c.fail.Store(nil)
					c.end()
				})
			})
		}
	}
}

// TestEndAtFailingServersIsCheap: ten writes for critical, the deregistration and the logout.
func TestEndAtFailingServersIsCheap(t *testing.T) {
	t.Parallel()
	for name, fail := range failures() {
		if name == "writes fail" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 20 {
				inCounted(t, true, func(c *counted) {
					c.run()
					c.advance(time.Minute)
					c.breaks(fail)
					before := c.writes.Load()
					took, _ := c.end()
					if n := c.writes.Load() - before; n > 10 {
						t.Errorf("%d writes after TERM", n)
					}
					if took > 27*sec {
						t.Errorf("took %s", took)
					}
				})
			}
		})
	}
}

// TestServersThatReturnGetCritical within the stop timeout, a few seconds later.
func TestServersThatReturnGetCritical(t *testing.T) {
	t.Parallel()
	for _, outage := range []time.Duration{500 * time.Millisecond, 2 * sec, 5 * sec, 10 * sec} {
		var most time.Duration
		for range 20 {
			inCounted(t, true, func(c *counted) {
				c.run()
				c.advance(time.Minute)
				c.breaks(testkit.Refused(http.StatusInternalServerError, "No cluster leader"))
				c.cancel(&exit.SignalError{})
				c.advance(outage)
				c.fail.Store(nil)
				back := time.Now()
				for c.s.status("web-0f9de17a-app") != "critical" {
					c.advance(100 * time.Millisecond)
				}
				most = max(most, time.Since(back))
				c.end()
			})
		}
		t.Logf("after an outage of %s at TERM critical is written %s later at most", outage, most)
		if limit := min(6*sec, 2*outage) + sec/10; most > limit {
			t.Errorf("after an outage of %s critical was written %s later", outage, most)
		}
	}
}

// TestOldWriteOfAPausedServerIsUndone: it applies passing after critical was written.
func TestOldWriteOfAPausedServerIsUndone(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, end := range map[string]bool{"a container becomes unhealthy": false, "the task ends": true} {
		for _, after := range []time.Duration{200 * ms, 900 * ms, 2500 * ms, 4000 * ms, 6500 * ms} {
			t.Run(name+" "+after.String(), func(t *testing.T) {
				t.Parallel()
				inCounted(t, true, func(c *counted) { paused(c, after, end) })
			})
		}
	}
}

// doubting is a registrar whose first passing write was sent to two servers.
type doubting struct {
	registrar.Registrar
	once bool
}

func (d *doubting) Set(
	ctx context.Context, token string, w workload.Workload, updates []registrar.Update,
) []registrar.Result {
	results := d.Registrar.Set(ctx, token, w, updates)
	if !d.once && updates[0].Status == "passing" {
		d.once, results[0].Unsure = true, true
	}
	return results
}

// paused makes a server that was paused apply the passing write of a task some time after
// critical was written; another server has taken both.
func paused(c *counted, after time.Duration, end bool) {
	c.registrar = &doubting{Registrar: c.registrar}
	c.metadata.set(map[string]string{"app": "UNHEALTHY", "sidecar-proxy": "HEALTHY"}, nil)
	c.run()
	c.advance(time.Minute)
	var old atomic.Pointer[[]byte]
	c.breaks(func(r *http.Request) (*http.Response, error) {
		if testkit.Kind(r) == "catalog/register" && old.Load() == nil {
			kept := body(r)
			old.Store(&kept)
		}
		return nil, nil
	})
	c.metadata.set(map[string]string{"app": "HEALTHY", "sidecar-proxy": "HEALTHY"}, nil)
	c.advance(sec)
	c.wantCatalog("passing")
	if end {
		c.cancel(&exit.SignalError{})
	} else {
		c.metadata.set(map[string]string{"app": "UNHEALTHY", "sidecar-proxy": "HEALTHY"}, nil)
	}
	c.advance(sec / 2)
	c.wantCatalog("critical")
	c.advance(after)
	c.s.apply(*old.Load())
	c.wantCatalog("passing")
	c.advance(2*sec + 100*time.Millisecond)
	c.wantCatalog("critical")
	c.end()
}

// TestOldWriteIsUndoneWithoutMetadata: they are lost when critical has been written.
func TestOldWriteIsUndoneWithoutMetadata(t *testing.T) {
	t.Parallel()
	inCounted(t, true, func(c *counted) {
		c.registrar = &doubting{Registrar: c.registrar}
		c.run()
		c.advance(sec / 2)
		c.metadata.set(map[string]string{"app": "UNHEALTHY", "sidecar-proxy": "HEALTHY"}, nil)
		c.advance(sec)
		c.metadata.set(nil, errors.New("connection refused"))
		c.advance(sec)
		c.s.apply([]byte(`{"Checks":[{"CheckID":"web-0f9de17a-app","Status":"passing"}]}`))
		c.advance(2*sec + 500*time.Millisecond)
		c.wantCatalog("critical")
		c.end()
	})
}

// TestReadBackThatFailsIsRepeated: the servers had no leader while the checks were to be read.
func TestReadBackThatFailsIsRepeated(t *testing.T) {
	t.Parallel()
	inCounted(t, true, func(c *counted) {
		c.registrar = &doubting{Registrar: c.registrar}
		c.run()
		c.advance(sec / 2)
		c.metadata.set(map[string]string{"app": "UNHEALTHY", "sidecar-proxy": "HEALTHY"}, nil)
		c.advance(sec)
		c.wantCatalog("critical")
		c.breaks(testkit.Refused(http.StatusInternalServerError, "No cluster leader", "txn"))
		c.advance(12 * sec)
		c.s.apply([]byte(`{"Checks":[{"CheckID":"web-0f9de17a-app","Status":"passing"}]}`))
		c.fail.Store(nil)
		c.advance(10 * sec)
		c.wantCatalog("critical")
		c.end()
	})
}

func (c *counted) wantCatalog(want string) {
	c.t.Helper()
	if got := c.s.status("web-0f9de17a-app"); got != want {
		c.t.Errorf("the check is %s, want %s", got, want)
	}
}

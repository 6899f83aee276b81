package healthsync

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// ports are those of a task, all open or all closed.
type ports struct {
	mu     sync.Mutex
	closed bool
	looks  int
	lost   int // the look that fails, from 1
}

func (p *ports) accepts(context.Context, string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.looks++; p.closed || p.looks == p.lost {
		return errRefused
	}
	return nil
}

func (p *ports) close(closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = closed
}

// away returns the ways in which the metadata endpoint is away.
func away() map[string]error {
	return map[string]error{"refuses": errors.New("connection refused"), "hangs": errHang}
}

// inOutage runs a test of a task with an agent, whose metadata are away after a minute.
func inOutage(t *testing.T, err error, test func(r *fixture, p *ports)) {
	t.Helper()
	inBubble(t, []string{"app"}, func(r *fixture) {
		p := &ports{}
		r.accepts = p.accepts
		r.metadata.set(healthOf("HEALTHY"), nil)
		r.run()
		r.advance(time.Minute)
		r.metadata.set(nil, err)
		test(r, p)
	})
}

func TestServingTaskStaysInTrafficWithoutMetadata(t *testing.T) {
	t.Parallel()
	for name, err := range away() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inOutage(t, err, func(r *fixture, p *ports) {
				began := time.Now()
				for range 30 * 60 {
					r.advance(sec)
					r.wantStatus("app", "passing")
				}
				r.agent.mu.Lock()
				output := r.agent.checks["app"].output
				r.agent.mu.Unlock()
				want := `container "app" is HEALTHY in ECS; the ECS metadata endpoint has not answered since ` +
					began.UTC().Format("15:04")
				if !strings.HasPrefix(output, want) {
					t.Errorf("output %q, want %q", output, want)
				}
				if !strings.HasSuffix(output, ", the port accepts connections") {
					t.Errorf("output %q", output)
				}
				if p.looks > 31*60 {
					t.Errorf("%d looks at the port in 30 minutes", p.looks)
				}
				r.metadata.set(healthOf("UNHEALTHY"), nil)
				r.advance(4 * sec)
				r.wantStatus("app", "critical")
				r.term()
			})
		})
	}
}

func TestContainerThatEndsWithoutMetadataIsCriticalWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	for name, err := range away() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inOutage(t, err, func(r *fixture, p *ports) {
				r.advance(10*sec + 300*time.Millisecond)
				p.close(true)
				r.advance(2 * sec)
				r.wantStatus("app", "critical")
				p.close(false) // started again
				r.advance(2 * sec)
				r.wantStatus("app", "passing")
				r.term()
			})
		})
	}
}

// TestOneLostConnectionIsNoEnd: an application whose backlog is full for a moment lives.
func TestOneLostConnectionIsNoEnd(t *testing.T) {
	t.Parallel()
	inOutage(t, errors.New("connection refused"), func(r *fixture, p *ports) {
		r.advance(10*sec + 100*time.Millisecond)
		p.mu.Lock()
		p.lost = p.looks + 3
		p.mu.Unlock()
		for range 20 {
			r.advance(sec / 2)
			r.wantStatus("app", "passing")
		}
		r.term()
	})
}

// TestStatusExpiresWithoutEvidence after five minutes: there is no port, or it is for UDP.
func TestStatusExpiresWithoutEvidence(t *testing.T) {
	t.Parallel()
	for name, port := range map[string]int{"no port": 0, "UDP": 8080} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, []string{"app"}, func(r *fixture) {
				r.cfg.Service.Port = port
				r.metadata.set(healthOf("HEALTHY"), nil)
				r.run()
				r.advance(time.Minute)
				r.metadata.set(nil, errors.New("connection refused"))
				r.advance(vouchFor)
				r.wantStatus("app", "passing")
				r.advance(31 * sec)
				r.wantStatus("app", "critical")
				r.metadata.set(healthOf("HEALTHY"), nil)
				r.advance(sec)
				r.wantStatus("app", "passing")
				r.term()
			})
		})
	}
}

// TestRestartOfTheECSAgentCausesNoWrite: all tasks of a machine have it together.
func TestRestartOfTheECSAgentCausesNoWrite(t *testing.T) {
	t.Parallel()
	atServers(t, []string{"app"}, func(r *fixture) {
		p := &ports{}
		r.accepts = p.accepts
		var outputs []string
		r.catalog.output = func(output string) { outputs = append(outputs, output) }
		r.run()
		r.advance(time.Minute)
		known := len(outputs)
		r.metadata.set(nil, errors.New("connection refused"))
		r.advance(20 * sec)
		r.metadata.set(map[string]string{"app": "HEALTHY", "sidecar-proxy": "HEALTHY"}, nil)
		r.advance(2 * time.Minute)
		if len(outputs) != known {
			t.Errorf("other outputs: %q", outputs[known:])
		}
		r.wantPuts(put{0, statuses("passing", "passing", "passing")})
		r.end()
	})
}

// TestProxyThatEndsWithoutMetadata makes its check critical, and that of the service.
func TestProxyThatEndsWithoutMetadata(t *testing.T) {
	t.Parallel()
	atServers(t, []string{"app"}, func(r *fixture) {
		var mu sync.Mutex
		ended := false
		r.accepts = func(_ context.Context, address string) error {
			mu.Lock()
			defer mu.Unlock()
			if ended && !strings.HasSuffix(address, ":8080") {
				return errRefused
			}
			return nil
		}
		r.run()
		r.advance(time.Minute)
		r.catalog.recorded()
		r.metadata.set(nil, errors.New("connection refused"))
		r.advance(time.Minute)
		mu.Lock()
		ended = true
		mu.Unlock()
		r.advance(2 * sec)
		puts := r.catalog.recorded()
		if len(puts) != 1 {
			t.Fatalf("writes %v", puts)
		}
		for check, want := range map[string]string{
			"app": "", "consul-dataplane": "critical", "sidecar-proxy-consul-dataplane": "critical",
		} {
			if got := puts[0].Checks[check]; got != want {
				t.Errorf("%s: wrote %q, want %q", check, got, want)
			}
		}
		r.end()
	})
}

// TestPortWithoutHealthSyncContainersSaysNothing: only the proxy's health counts for such a
// task, whatever its application does.
func TestPortWithoutHealthSyncContainersSaysNothing(t *testing.T) {
	t.Parallel()
	atServers(t, nil, func(r *fixture) {
		p := &ports{}
		r.accepts = func(ctx context.Context, address string) error {
			if strings.HasSuffix(address, ":8080") {
				return p.accepts(ctx, address)
			}
			return nil
		}
		r.run()
		r.advance(time.Minute)
		r.catalog.recorded()
		r.metadata.set(nil, errors.New("connection refused"))
		r.advance(sec)
		p.close(true)
		r.advance(10 * time.Minute)
		r.wantPuts()
		r.end()
	})
}

// TestLastReportCountsWithoutMetadata: what ECS reported last is written, also when the writes
// failed then, or waited for a pause.
func TestLastReportCountsWithoutMetadata(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		since   time.Duration // the first report
		reports []string
		want    string
	}{
		"reverted":          {sec, []string{"UNHEALTHY", "HEALTHY"}, "passing"},
		"reverted late":     {time.Minute, []string{"UNHEALTHY", "HEALTHY"}, "passing"},
		"waits for a pause": {10 * sec, []string{"UNHEALTHY", "HEALTHY", "UNHEALTHY"}, "critical"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 10 { // the pauses are random
				atServers(t, []string{"app"}, func(r *fixture) {
					r.accepts = func(context.Context, string) error { return nil }
					r.run()
					r.advance(sec)
					r.catalog.setAnswer(func(put) error { return errServer })
					for i, health := range c.reports {
						r.metadata.set(map[string]string{"app": health, "sidecar-proxy": "HEALTHY"}, nil)
						r.advance(sec)
						if i == 0 {
							r.advance(c.since)
						}
					}
					r.metadata.set(nil, errors.New("connection refused"))
					r.advance(sec)
					r.catalog.setAnswer(nil)
					r.advance(20 * sec)
					if got := r.catalog.status("app"); got != c.want {
						t.Errorf("the check is %s, want %s", got, c.want)
					}
					r.end()
				})
			}
		})
	}
}

// TestPortThatAcceptsAgainIsNotWrittenAsRefusing when the write has failed meanwhile.
func TestPortThatAcceptsAgainIsNotWrittenAsRefusing(t *testing.T) {
	t.Parallel()
	atServers(t, []string{"app"}, func(r *fixture) {
		p := &ports{}
		r.accepts = p.accepts
		r.run()
		r.advance(time.Minute)
		r.metadata.set(nil, errors.New("connection refused"))
		r.advance(10 * sec)
		r.catalog.setAnswer(func(put) error { return errServer })
		p.close(true)
		r.advance(10 * sec)
		p.close(false)
		r.advance(2 * sec)
		r.catalog.recorded()
		r.catalog.setAnswer(nil)
		r.advance(time.Minute)
		r.wantPuts()
		r.end()
	})
}

// TestReportTakesThePlaceOfRefusing: a port that accepts in the next outage is no reason to pass.
func TestReportTakesThePlaceOfRefusing(t *testing.T) {
	t.Parallel()
	atServers(t, []string{"app"}, func(r *fixture) {
		p := &ports{}
		r.accepts = p.accepts
		r.run()
		r.advance(time.Minute)
		r.metadata.set(nil, errors.New("connection refused"))
		r.advance(sec)
		p.close(true)
		r.advance(5 * sec)
		r.metadata.set(map[string]string{"app": "UNHEALTHY", "sidecar-proxy": "HEALTHY"}, nil)
		r.advance(sec)
		p.close(false)
		r.metadata.set(nil, errors.New("connection refused"))
		r.advance(time.Minute)
		if got := r.catalog.status("app"); got != "critical" {
			t.Errorf("the check is %s, want critical", got)
		}
		r.end()
	})
}

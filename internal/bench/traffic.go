package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	trafficRuns = 30
	controlRuns = 5
	// dialPause and requestPause are how finely the two moments are seen.
	dialPause    = 2 * time.Millisecond
	requestPause = 10 * time.Millisecond
	// trafficLimit is more than two intervals of the old listener check.
	trafficLimit = 30 * time.Second
	// agentSettles is long enough for a new agent's first exchange.
	agentSettles = 5 * time.Second
	// oldInterval is version 0.6's listener check.
	oldInterval = "10s"
)

// mesh is a Consul agent and a `web` Envoy that sends to `api`.
type mesh struct {
	*consul
	// upstream is where web's Envoy listens for requests to api.
	upstream string
	client   *http.Client
}

// trafficFigure starts fresh instances of api one after the other and asks web
// for them. Ours and the control take turns.
func trafficFigure(s *fixture) ([]row, error) {
	m, err := s.newMesh()
	if err != nil {
		return nil, err
	}
	// Not counted: an agent that has just met its servers holds changes back
	// for up to 3 s, until its first full exchange with them.
	for start := time.Now(); time.Since(start) < agentSettles; {
		if _, err := s.newInstance(m, ""); err != nil {
			return nil, err
		}
	}
	var ours, control sample
	n := s.harness.repeat(trafficRuns)
	for i := range n {
		d, err := s.newInstance(m, "")
		if err != nil {
			return nil, err
		}
		ours.add(seconds.of(d))
		if every := max(n/controlRuns, 1); i%every != 0 {
			continue
		}
		if d, err = s.newInstance(m, oldInterval); err != nil {
			return nil, err
		}
		control.add(seconds.of(d))
		s.harness.say("  run %d of %d: median %.2f s, with the old check %.2f s", i+1, n, ours.median(),
			control.median())
	}
	return []row{{"Envoy listens to first request through the mesh", seconds, "1.6 to 9.8", "0.8 median, 1.5 max", ours,
		[]reference{{"ours with a listener check every " + oldInterval + ", as 0.6", control}}}}, nil
}

func (s *fixture) newMesh() (*mesh, error) {
	c, err := s.consul(false)
	if err != nil {
		return nil, err
	}
	ports, err := testkit.FreePorts(2)
	if err != nil {
		return nil, err
	}
	m := &mesh{consul: c, upstream: fmt.Sprintf("127.0.0.1:%d", ports[0])}
	m.client = &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	t, err := s.newTask("web", "app")
	if err != nil {
		return nil, err
	}
	env, err := t.env(c.address, c, object{"proxy": object{
		"publicListenerPort": ports[1],
		"upstreams":          []object{{"destinationName": "api", "localBindPort": ports[0]}},
	}})
	if err != nil {
		return nil, err
	}
	if _, err := s.time(env, s.harness.program, "mesh-init"); err != nil {
		return nil, err
	}
	_, _, err = s.startEnvoy(t, m.upstream)
	return m, err
}

// startEnvoy starts a task's Envoy and returns when its listener accepted.
func (s *fixture) startEnvoy(t *task, listener string) (*child, time.Time, error) {
	bin := testkit.Binary("envoy")
	if bin == "" {
		return nil, time.Time{}, errors.New("envoy not found: run 'make tools'")
	}
	path := filepath.Join(t.dir, workload.FileBootstrap)
	if err := moveAdmin(path); err != nil {
		return nil, time.Time{}, err
	}
	// As small as Envoy gets: several share this machine.
	envoy, err := s.start(nil, bin, "-c", path, "--use-dynamic-base-id", "--concurrency", "1", "--log-level", "error")
	if err != nil {
		return nil, time.Time{}, err
	}
	at, err := s.until("Envoy listens at "+listener, dialPause, trafficLimit, func() bool { return accepts(listener) })
	if err != nil {
		err = fmt.Errorf("%w: %s", err, envoy.log)
	}
	return envoy, at, err
}

// moveAdmin gives a bootstrap's admin interface a port of Envoy's choice,
// because all tasks share one network here.
func moveAdmin(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		return err
	}
	doc["admin"] = object{"address": object{"socket_address": object{"address": "127.0.0.1", "port_value": 0}}}
	if data, err = json.Marshal(doc); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil { // it may be read-only
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

func accepts(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func splitAddress(address string) (host, port string) {
	host, port, _ = net.SplitHostPort(address)
	return host, port
}

// newInstance starts one instance of api, an application that answers its task
// ID, and returns the time from its Envoy listening to that answer at web's.
// With an interval its listener check is registered again with that one.
func (s *fixture) newInstance(m *mesh, interval string) (time.Duration, error) {
	t, err := s.newTask("api", "app")
	if err != nil {
		return 0, err
	}
	app, err := s.serve("", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, t.id) }))
	if err != nil {
		return 0, err
	}
	_, appPort := splitAddress(app)
	port, err := strconv.Atoi(appPort)
	if err != nil {
		return 0, err
	}
	public, err := testkit.FreePorts(1)
	if err != nil {
		return 0, err
	}
	env, err := t.env(m.address, m.consul, object{
		"service": object{"name": t.service, "port": port},
		"proxy":   object{"publicListenerPort": public[0]},
	})
	if err != nil {
		return 0, err
	}
	m.requests.take()
	if _, err := s.time(env, s.harness.program, "mesh-init"); err != nil {
		return 0, err
	}
	if interval != "" {
		if err := m.reregister(t, interval); err != nil {
			return 0, err
		}
	}
	envoy, listening, err := s.startEnvoy(t, fmt.Sprintf("127.0.0.1:%d", public[0]))
	if err != nil {
		return 0, err
	}
	answered, err := s.until("an answer of "+t.id+" through the mesh", requestPause, trafficLimit,
		func() bool { return m.ask() == t.id })
	if err != nil {
		return 0, err
	}
	// The next instance finds a mesh without this one.
	if err := m.forget(t); err != nil {
		return 0, err
	}
	envoy.kill()
	_, err = s.until("web forgets "+t.id, requestPause, trafficLimit, func() bool { return m.ask() == "" })
	return answered.Sub(listening), err
}

// ask sends one request through web's Envoy; no answer is "".
func (m *mesh) ask() string {
	resp, err := m.client.Get("http://" + m.upstream + "/")
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return ""
	}
	return string(body)
}

// reregister repeats mesh-init's own registration of the proxy with another
// interval of the listener check.
func (m *mesh) reregister(t *task, interval string) error {
	for _, e := range m.requests.take() {
		if e.path != "/v1/agent/service/register" || !strings.Contains(e.body, `"`+t.proxyID()+`"`) {
			continue
		}
		var r api.AgentServiceRegistration
		if err := json.Unmarshal([]byte(e.body), &r); err != nil {
			return fmt.Errorf("read our registration: %w", err)
		}
		for _, check := range r.Checks {
			if check.TCP != "" {
				check.Interval = interval
			}
		}
		return m.direct.Agent().ServiceRegister(&r)
	}
	return errors.New("mesh-init did not register proxy " + t.proxyID())
}

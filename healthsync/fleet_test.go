package healthsync

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

// What servers do with a session, as docs/HEALTH.md has it, and with another write.
const (
	sessionLife  = 30 * time.Second
	creationCost = 900 * time.Microsecond
	taskCost     = 2 * time.Microsecond
	writeCost    = time.Millisecond
)

// sessions are those of a fleet's servers, with the checks of its tasks.
type sessions struct {
	*testkit.Fleet
	// version is the servers'.
	version string
	mu      sync.Mutex // for what is below
	created int
	byID    map[string]*session
	checks  map[string]map[string]any
	// back is when each name had a session after the outage.
	back map[string]time.Time
}

type session struct {
	name    string
	renewed time.Time
}

func (s *session) lives() bool { return time.Since(s.renewed) < sessionLife }

// newSessions returns servers of n tasks that go through the phases after a calm minute.
func newSessions(n int, phases ...testkit.Phase) *sessions {
	s := &sessions{
		version: "1.22.2", byID: map[string]*session{},
		checks: map[string]map[string]any{}, back: map[string]time.Time{},
	}
	creation := creationCost + time.Duration(n)*taskCost
	calm := testkit.Phase{For: time.Minute, Do: func(r *http.Request) (*http.Response, error) {
		pause := time.Duration(0)
		switch testkit.Kind(r) {
		case "session/create":
			pause = creation
		case "catalog/register":
			pause = writeCost
		}
		<-time.After(pause)
		status, text := s.answer(r, body(r))
		return testkit.Answer(status, text), nil
	}}
	s.Fleet = testkit.NewFleet(append([]testkit.Phase{calm}, phases...)...)
	s.Cost["session/create"], s.Cost["catalog/register"] = creation, writeCost
	for _, kind := range []string{
		"session/create", "session/renew", "session/node", "session/destroy",
		"txn", "catalog/register", "catalog/service",
	} {
		s.Answers[kind] = s.answer
	}
	return s
}

func body(r *http.Request) []byte {
	if r.GetBody == nil {
		return nil
	}
	reader, _ := r.GetBody()
	data := make([]byte, r.ContentLength)
	_, _ = reader.Read(data)
	return data
}

func (s *sessions) answer(r *http.Request, body []byte) (int, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	switch testkit.Kind(r) {
	case "session/create":
		return http.StatusOK, s.create(body)
	case "session/renew":
		if own := s.byID[id]; own != nil && own.lives() {
			own.renewed = time.Now()
			return http.StatusOK, "[{}]"
		}
		return http.StatusNotFound, "Session id '" + id + "' not found"
	case "session/destroy":
		delete(s.byID, id)
	case "session/node":
		return http.StatusOK, s.list()
	case "txn":
		return s.txn(body)
	case "catalog/register":
		s.register(body)
	case "catalog/service":
		return http.StatusOK, `[{"Node":"s1","NodeMeta":{"consul-version":"` + s.version + `"}}]`
	}
	return http.StatusOK, "true"
}

func (s *sessions) create(body []byte) string {
	var entry struct{ Name string }
	if err := json.Unmarshal(body, &entry); err != nil {
		panic(err)
	}
	s.created++
	id := fmt.Sprint("s", s.created)
	s.byID[id] = &session{entry.Name, time.Now()}
	if _, known := s.back[entry.Name]; !known && !time.Now().Before(s.Served()) {
		s.back[entry.Name] = time.Now()
	}
	return `{"ID":"` + id + `"}`
}

func (s *sessions) list() string {
	var entries []map[string]string
	for id, own := range s.byID {
		if own.lives() {
			entries = append(entries, map[string]string{"ID": id, "Name": own.name})
		}
	}
	text, _ := json.Marshal(entries)
	return string(text)
}

func (s *sessions) register(body []byte) {
	var entry struct{ Checks []map[string]any }
	if err := json.Unmarshal(body, &entry); err != nil {
		panic(err)
	}
	for _, check := range entry.Checks {
		s.checks[check["CheckID"].(string)] = check
	}
}

func (s *sessions) txn(body []byte) (int, string) {
	var ops []struct {
		Check struct{ Check struct{ CheckID string } }
	}
	if err := json.Unmarshal(body, &ops); err != nil {
		panic(err)
	}
	results, failed := []any{}, []any{}
	for i, op := range ops {
		check := s.checks[op.Check.Check.CheckID]
		if check == nil {
			failed = append(failed, map[string]any{"OpIndex": i, "What": "check doesn't exist"})
			continue
		}
		results = append(results, map[string]any{"Check": check})
	}
	status := http.StatusOK
	if len(failed) > 0 {
		status, results = http.StatusConflict, nil
	}
	text, _ := json.Marshal(map[string]any{"Results": results, "Errors": failed})
	return status, string(text)
}

// apply applies a registration, and status returns that of a check.
func (s *sessions) apply(body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.register(body)
}

func (s *sessions) status(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	status, _ := s.checks[id]["Status"].(string)
	return status
}

// names returns the names of the sessions that live, and how many more there are.
func (s *sessions) names() (names map[string]bool, doubled int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names = map[string]bool{}
	for _, own := range s.byID {
		if !own.lives() {
			continue
		}
		if names[own.name] {
			doubled++
		}
		names[own.name] = true
	}
	return names, doubled
}

// steady is a task whose containers are always healthy.
type steady struct{ task workload.Task }

func (s steady) Task(context.Context) (workload.Task, error) { return s.task, nil }

func steadyTask(i int) steady {
	container := func(name string) workload.Container {
		return workload.Container{
			Name: name, Type: "NORMAL", DesiredStatus: "RUNNING", KnownStatus: "RUNNING",
			Health:   &workload.Health{Status: "HEALTHY"},
			Networks: []workload.Network{{IPv4Addresses: []string{"10.0.0.9"}}},
		}
	}
	return steady{workload.Task{
		Cluster: "mesh", TaskARN: fmt.Sprintf("arn:aws:ecs:us-west-2:111122223333:task/mesh/%08x", i), Family: "web",
		Containers: []workload.Container{container("app"), container("sidecar-proxy")},
	}}
}

// runFleet runs n tasks until the end.
func runFleet(t *testing.T, s *sessions, n int, end time.Duration) {
	t.Helper()
	client, err := consulutil.NewClient(consulutil.Options{Address: "10.0.0.1:8500", Wrap: s.Wrap})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	var wg sync.WaitGroup
	for i := range n {
		cfg := &config.Config{
			BootstrapDir: t.TempDir(), ConsulServers: &config.ConsulServers{Hosts: "consul.example"},
			Service: &config.Service{Name: "web", Port: 8080}, HealthSyncContainers: []string{"app"},
			Proxy: &config.Proxy{PublicListenerPort: 20000, Mode: config.ProxyDirect, HealthCheckPort: 22000},
		}
		wg.Go(func() {
			<-time.After(time.Duration(i) * 30 * time.Second / time.Duration(n))
			_ = Run(ctx, Options{Config: cfg, StopTimeout: time.Second}, Deps{
				Metadata: steadyTask(i), Registrar: registrar.New(cfg, client), Log: hclog.NewNullLogger(),
				AwaitStart: func(context.Context) error { return nil },
				Serves:     func(context.Context, int, string) error { return nil },
				Accepts:    func(context.Context, string) error { return nil },
			})
		})
	}
	<-time.After(end)
	synctest.Wait()
	names, doubled := s.names()
	t.Logf("%d tasks have a session, %d sessions more, %d created; %v",
		len(names), doubled, s.created, s.Count("session/create"))
	cancel(&exit.SignalError{})
	wg.Wait()
}

// TestSessionsComeBack: after an outage in which all sessions have ended, the tasks of a
// cluster are in traffic again in little more than the time that the servers need.
func TestSessionsComeBack(t *testing.T) {
	outages := map[string][]testkit.Phase{
		"refused":   {{For: time.Minute, Do: testkit.Refuse}},
		"hang":      {{For: time.Minute, Do: testkit.Hang}},
		"no leader": {{For: time.Minute, Do: testkit.NoLeader}},
		"frozen":    {{For: time.Minute, Frozen: true}},
		"late":      {{For: time.Minute, Do: testkit.Refuse}},
	}
	for name, phases := range outages {
		sizes := []int{1000}
		switch {
		case testing.Short():
			sizes = []int{100}
		case name == "refused":
			sizes = []int{1000, 3000, 5000}
		}
		for _, n := range sizes {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				latency := map[bool]time.Duration{true: 2 * time.Second}[name == "late"]
				synctest.Test(t, func(t *testing.T) { comeBack(t, n, latency, phases) })
			})
		}
	}
}

func comeBack(t *testing.T, n int, latency time.Duration, phases []testkit.Phase) {
	s := newSessions(n, phases...)
	s.Latency = latency
	ideal := time.Duration(n) * (creationCost + time.Duration(n)*taskCost + writeCost)
	runFleet(t, s, n, time.Until(s.Served())+2*ideal+time.Minute)
	var back []time.Duration
	for _, at := range s.back {
		back = append(back, at.Sub(s.Served()))
	}
	slices.Sort(back)
	if len(back) == 0 {
		t.Fatal("no session was created")
	}
	last := back[len(back)-1]
	t.Logf("%d of %d tasks back, the last after %s, %.2f of the ideal %s",
		len(back), n, last.Round(100*time.Millisecond), last.Seconds()/ideal.Seconds(), ideal)
	if len(back) != n {
		t.Errorf("%d of %d tasks have a session again", len(back), n)
	}
	if orphaned := s.created - 2*n; orphaned > 0 {
		t.Errorf("%d sessions without an owner", orphaned)
	}
	// A renewal that hangs ends after 5 s, and the next one notices the loss within 2.4 s.
	if limit := ideal*3/2 + 8*time.Second + 2*latency; last > limit {
		t.Errorf("the last one is back after %s, want %s", last, limit)
	}
}

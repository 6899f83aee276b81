package healthsync

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

const taskARN = "arn:aws:ecs:us-west-2:111122223333:task/mesh/0f9de17a"

var (
	errGone    = consulutil.WithClass(errors.New("404"), retry.Gone)
	errDenied  = consulutil.WithClass(errors.New("403"), retry.Permanent)
	errServer  = errors.New("500")
	errRefused = fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
)

// metadata is a fake endpoint whose answer a test may change.
type metadata struct {
	mu     sync.Mutex
	reads  int
	family string
	// health is by container; a container without an entry is not listed.
	health map[string]string
	// stopped are those of them that have ended permanently.
	stopped []string
	arn     string
	address string // of the task, which then lists health-sync too
	err     error  // errHang keeps the read until the caller goes away
}

// noHealthCheck is in place of a health status for a container without a health check.
const noHealthCheck = "no health check"

func (m *metadata) Task(ctx context.Context) (workload.Task, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	if errors.Is(m.err, errHang) {
		m.mu.Unlock()
		<-ctx.Done()
		m.mu.Lock()
		return workload.Task{}, ctx.Err()
	}
	if m.err != nil {
		return workload.Task{}, m.err
	}
	task := workload.Task{Cluster: "mesh", TaskARN: m.arn, Family: m.family}
	if m.address != "" {
		task.Containers = append(task.Containers, workload.Container{
			Name: "consul-ecs-health-sync", Type: "NORMAL", DesiredStatus: "RUNNING", KnownStatus: "RUNNING",
			Networks: []workload.Network{{IPv4Addresses: []string{m.address}}},
		})
	}
	for name, health := range m.health {
		status := "RUNNING"
		if slices.Contains(m.stopped, name) {
			status = "STOPPED"
		}
		c := workload.Container{Name: name, Type: "NORMAL", DesiredStatus: status, KnownStatus: status}
		if health != noHealthCheck {
			c.Health = &workload.Health{Status: health}
		}
		task.Containers = append(task.Containers, c)
	}
	return task, nil
}

func (m *metadata) set(health map[string]string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.health, m.err = health, err
}

func (m *metadata) stop(names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped = append(m.stopped, names...)
}

// logout records the secrets that were logged out.
type logout struct {
	mu      sync.Mutex
	start   time.Time
	secrets []string
	answer  func(secret string) error
}

func (l *logout) do(ctx context.Context, secret string) error {
	if ctx.Err() != nil {
		return ctx.Err() // no time left is no attempt
	}
	l.mu.Lock()
	l.secrets = append(l.secrets, secret)
	answer := l.answer
	l.mu.Unlock()
	if answer == nil {
		return nil
	}
	err := answer(secret)
	if errors.Is(err, errHang) {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (l *logout) deregister(ctx context.Context, token string, w workload.Workload) error {
	return l.do(ctx, w.ID+" with "+token)
}

func (l *logout) distinct() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, s := range l.secrets {
		if len(out) == 0 || out[len(out)-1] != s {
			out = append(out, s)
		}
	}
	return out
}

// fixture is one health-sync in a synctest bubble.
type fixture struct {
	t        *testing.T
	cfg      *config.Config
	metadata *metadata
	agent    *agent
	logout   *logout
	servers  *logout  // of services, in place of secrets
	catalog  *catalog // of a task without an agent
	// registrar takes the place of agent.
	registrar registrar.Registrar
	logins    *logins
	static    bool
	stop      time.Duration
	ignore    workload.Ignored
	log       *testkit.Log
	// awaitStart is what mesh-init has come to.
	awaitStart func(context.Context) error
	serves     func(ctx context.Context, port int, path string) error
	// accepts is about the task's ports.
	accepts func(ctx context.Context, address string) error

	cancel context.CancelCauseFunc
	done   chan struct{}
	err    error
	ended  time.Time
}

// inBubble runs a test with virtual time. The fixture is configured but not
// started.
func inBubble(t *testing.T, containers []string, test func(*fixture)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := &fixture{
			t: t,
			cfg: &config.Config{
				BootstrapDir:         dir,
				ConsulHTTPAddr:       "consul.example:8500",
				HealthSyncContainers: containers,
				Service:              &config.Service{Name: "web", Port: 8080},
				Proxy:                &config.Proxy{PublicListenerPort: 20000},
			},
			metadata: &metadata{arn: taskARN, family: "web", health: map[string]string{}},
			agent:    newAgent(),
			logout:   &logout{start: time.Now()},
			servers:  &logout{start: time.Now()},
			logins:   &logins{},
			stop:     30 * time.Second,
			log:      &testkit.Log{},
			done:     make(chan struct{}),

			awaitStart: func(context.Context) error { return nil },
			accepts:    func(context.Context, string) error { return errRefused },
		}
		test(r)
		if r.cancel != nil {
			r.term()
		}
	})
}

func (r *fixture) login(serviceToken, clientToken string) {
	r.cfg.ConsulLogin.Enabled = true
	r.file("service-token", serviceToken)
	r.file("client-token", clientToken)
}

// file puts a file into the bootstrap directory; no content, no file.
func (r *fixture) file(name, content string) {
	r.t.Helper()
	if content == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(r.cfg.BootstrapDir, name), []byte(content), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *fixture) run() {
	ctx, cancel := context.WithCancelCause(context.Background())
	r.cancel = cancel
	log := hclog.New(&hclog.LoggerOptions{Output: r.log, Level: hclog.Info, DisableTime: true})
	go func() {
		defer close(r.done)
		var registered registrar.Registrar = r.agent
		ofAgent := r.servers.deregister
		switch {
		case r.registrar != nil:
			registered = r.registrar
		case r.catalog != nil:
			registered, ofAgent = r.catalog, nil
		}
		r.err = Run(ctx, Options{Config: r.cfg, Version: "v9.8.7",
			StopTimeout: r.stop, Ignore: r.ignore, StaticToken: r.static}, Deps{
			ReadToken:  r.logins.read,
			LogIn:      r.logins.logIn,
			AwaitStart: r.awaitStart,
			Serves:     r.serves,
			Accepts:    r.accepts,
			Metadata:   r.metadata, Registrar: registered, Publish: r.agent.publish, LogOut: r.logout.do, Log: log,
			DeregisterAtServers: ofAgent,
		})
		r.ended = time.Now()
	}()
}

// advance lets virtual time go by and everything settle.
func (r *fixture) advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// term stops the run and returns how long the drain took and its error.
func (r *fixture) term() (time.Duration, error) {
	at := time.Now()
	r.cancel(&exit.SignalError{Signal: syscall.SIGTERM})
	<-r.done
	return r.ended.Sub(at), r.err
}

func (r *fixture) wantStatus(container, want string) {
	r.t.Helper()
	if got := r.agent.status(container); got != want {
		r.t.Errorf("check of %s is %s, want %s", container, got, want)
	}
}

// logged counts the log lines that contain text.
func (r *fixture) logged(text string) int {
	n := 0
	for line := range strings.Lines(r.log.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// wantTerm sends TERM, and checks that the run ends as wantEnd wants it.
func (r *fixture) wantTerm(least, most time.Duration) {
	r.t.Helper()
	took, err := r.term()
	wantEnd(r.t, took, err, least, most)
}

// wantEnd checks that a run ended without an error, between least and most after TERM.
func wantEnd(t testing.TB, took time.Duration, err error, least, most time.Duration) {
	t.Helper()
	if err != nil {
		t.Errorf("error %v, want none", err)
	}
	if took < least || took > most {
		t.Errorf("took %s, want %s to %s", took, least, most)
	}
}

// wantFailure checks the exit code of an error and the texts in it.
func wantFailure(t testing.TB, err error, code int, texts ...string) {
	t.Helper()
	if got := cli.ExitCode(err); got != code {
		t.Errorf("exit code %d, want %d: %v", got, code, err)
	}
	for _, want := range texts {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

package clientagent

import (
	"bytes"
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

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/internal/volume"
	"github.com/meshtask/consul-ecs/workload"
)

const taskARN = "arn:aws:ecs:us-west-2:111122223333:task/mesh/0f9de17a"

var errFault = errors.New("500")

// history is what happened, in order, with the virtual time since the start.
type history struct {
	mu    sync.Mutex
	start time.Time
	lines []string
}

func (h *history) add(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := time.Since(h.start).Round(10 * time.Millisecond)
	h.lines = append(h.lines, at.String()+" "+fmt.Sprintf(format, args...))
}

// taken returns the lines so far, and forgets them.
func (h *history) taken() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	lines := h.lines
	h.lines = nil
	return lines
}

// metadata is a fake endpoint whose answer a test may change. A container is
// listed with its status, both desired and known.
type metadata struct {
	mu         sync.Mutex
	containers map[string]string
	networks   []workload.Network
	// restarts is the count of every container, nil without a restart policy.
	restarts *int
	err      error
	hang     bool
	last     time.Time // of the reads
}

func (m *metadata) Task(ctx context.Context) (workload.Task, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = time.Now()
	if m.hang {
		m.mu.Unlock()
		<-ctx.Done()
		m.mu.Lock()
		return workload.Task{}, ctx.Err()
	}
	if m.err != nil {
		return workload.Task{}, m.err
	}
	task := workload.Task{Cluster: "mesh", TaskARN: taskARN, Family: "web", DesiredStatus: "STOPPED"}
	for name, status := range m.containers {
		task.Containers = append(task.Containers, workload.Container{
			Name: name, Type: "NORMAL", DesiredStatus: status, KnownStatus: status, Networks: m.networks,
			RestartCount: m.restarts,
		})
	}
	return task, nil
}

func (m *metadata) set(change func(*metadata)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m)
}

// session is a fake login.
type session struct {
	*history
	// faults are by method; errHang waits for the end of the context.
	login, replicated error
	logout            func(secret string) error
	deregister        error
	// removed is how long the servers take to remove the node; 0 means that they
	// cannot be asked.
	removed time.Duration
	params  consulutil.LoginParams
	// life is that of each token; 0 means that they do not expire.
	life  time.Duration
	state sync.Mutex // of login and what follows
	made  int
	since time.Time // of the last token
}

var errHang = errors.New("hang")

func (s *session) Login(ctx context.Context, p consulutil.LoginParams) (consulutil.Token, error) {
	s.add("log in")
	s.params = p
	s.state.Lock()
	failure := s.login
	if failure == nil {
		s.made++
		s.since = time.Now()
	}
	token := s.token(fmt.Sprint("secret-", s.made))
	s.state.Unlock()
	if failure != nil {
		return consulutil.Token{Secret: p.Previous}, answer(ctx, failure)
	}
	return token, answer(ctx, s.replicated)
}

func (s *session) token(secret string) consulutil.Token {
	t := consulutil.Token{Accessor: strings.Replace(secret, "secret", "accessor", 1), Secret: secret, Created: s.since}
	if s.life > 0 {
		t.Expires = s.since.Add(s.life)
	}
	return t
}

// ReadToken takes any token, and answers for the login's.
func (s *session) ReadToken(_ context.Context, secret string) (consulutil.Token, error) {
	s.state.Lock()
	defer s.state.Unlock()
	return s.token(secret), nil
}

func (s *session) Logout(ctx context.Context, secret string) error {
	if ctx.Err() != nil {
		return ctx.Err() // no time left is no attempt
	}
	s.add("log out %s", secret)
	return answer(ctx, s.logout(secret))
}

// Deregister takes any token, and records it.
func (s *session) Deregister(ctx context.Context, id, secret string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.add("deregister %s with %s", id, secret)
	return answer(ctx, s.deregister)
}

// NodeRemoved takes any token, and records it.
func (s *session) NodeRemoved(ctx context.Context, id, secret string) error {
	if s.removed == 0 {
		return errFault
	}
	select {
	case <-time.After(s.removed):
		s.add("removed %s for %s", id, secret)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func answer(ctx context.Context, err error) error {
	if errors.Is(err, errHang) {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return err
}

// child is a fake agent.
type child struct {
	*history
	// leave is how long after TERM it ends, with code; never when negative.
	leave time.Duration
	// stubborn makes a second TERM change nothing; else it ends with 1.
	stubborn bool
	leaving  bool
	code     int
	once     sync.Once
	ended    chan int
}

func (c *child) Wait() int {
	code := <-c.ended
	c.add("agent ended %d", code)
	return code
}

func (c *child) end(code int) { c.once.Do(func() { c.ended <- code }) }

func (c *child) Signal(sig syscall.Signal) error {
	c.add("signal %s", sig)
	switch {
	case sig == syscall.SIGTERM && c.leaving && !c.stubborn:
		c.end(1)
	case sig == syscall.SIGTERM && c.leave >= 0:
		time.AfterFunc(c.leave, func() { c.end(c.code) })
	}
	c.leaving = c.leaving || sig == syscall.SIGTERM
	return nil
}

func (c *child) SignalGroup(sig syscall.Signal) error {
	c.add("signal %s to the group", sig)
	if sig == syscall.SIGKILL {
		c.end(137)
	}
	return nil
}

// fixture is one client-entrypoint in a synctest bubble.
type fixture struct {
	t        *testing.T
	options  Options
	metadata *metadata
	session  *session
	child    *child
	startErr error
	args     []string
	signals  chan os.Signal
	log      *bytes.Buffer
	*history

	done chan struct{}
	err  error
}

// inBubble runs a test with virtual time. ACLs are on; the fixture is not started.
func inBubble(t *testing.T, test func(*fixture)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := &history{start: time.Now()}
		r := &fixture{
			t: t,
			options: Options{
				Config: &config.Config{BootstrapDir: dir, ConsulHTTPAddr: "consul.example:8500",
					ConsulLogin: config.ConsulLogin{Enabled: true, Method: config.ClientAuthMethod}},
				Agent:       Agent{Program: program(t), Datacenter: "dc1", RetryJoin: []string{"10.0.0.1"}},
				FileGroup:   volume.GroupOfDir,
				StopTimeout: 30 * time.Second,
				Limit:       time.Minute,
			},
			metadata: &metadata{
				containers: map[string]string{"consul-client": "RUNNING", "web": "RUNNING",
					"sidecar-proxy": "RUNNING", "consul-ecs-health-sync": "RUNNING", "consul-ecs-mesh-init": "STOPPED"},
				networks: []workload.Network{{IPv4Addresses: []string{"10.1.2.3"}}},
			},
			session: &session{history: h, logout: func(string) error { return nil }},
			child:   &child{history: h, leave: 3 * time.Second, ended: make(chan int, 1)},
			signals: make(chan os.Signal, 8),
			log:     &bytes.Buffer{},
			history: h,
			done:    make(chan struct{}),
		}
		test(r)
	})
}

// program returns an existing program, in place of consul.
func program(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func (r *fixture) run() {
	log := hclog.New(&hclog.LoggerOptions{Output: r.log, Level: hclog.Info, DisableTime: true})
	go func() {
		defer close(r.done)
		r.err = Run(context.Background(), r.options, Deps{
			Metadata: r.metadata,
			Session:  func(workload.Task, hclog.Logger) Session { return r.session },

			ReadToken:   r.session.ReadToken,
			Deregister:  r.session.Deregister,
			NodeRemoved: r.session.NodeRemoved,
			Start: func(args []string) (Child, error) {
				if r.startErr != nil {
					return nil, r.startErr
				}
				r.add("start")
				r.args = args
				return r.child, nil
			},
			Signals: r.signals,
			Log:     log,
		})
	}()
	synctest.Wait()
}

// advance lets virtual time go by and everything settle.
func (r *fixture) advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// stop stops containers as ECS does, in that order.
func (r *fixture) stop(names ...string) {
	r.metadata.set(func(m *metadata) {
		for _, name := range names {
			m.containers[name] = "STOPPED"
		}
	})
}

// wait waits for the end and checks that no secret is in logs, errors or arguments.
func (r *fixture) wait() error {
	r.t.Helper()
	<-r.done
	output := fmt.Sprint(r.log, r.err, r.args)
	for _, secret := range []string{"secret-1", gossipKey} {
		if strings.Contains(output, secret) {
			r.t.Errorf("%s is in:\n%s", secret, output)
		}
	}
	return r.err
}

func (r *fixture) wantHistory(want ...string) {
	r.t.Helper()
	if d := cmp.Diff(want, r.taken()); d != "" {
		r.t.Errorf("history (-want +got):\n%s\nlog:\n%s", d, r.log)
	}
}

// wantFiles checks the names on the volume, in our directory too.
func (r *fixture) wantFiles(want ...string) {
	r.t.Helper()
	var got []string
	for _, dir := range []string{"", "consul-client"} {
		entries, _ := os.ReadDir(filepath.Join(r.options.Config.BootstrapDir, dir))
		for _, e := range entries {
			if !e.IsDir() {
				got = append(got, filepath.Join(dir, e.Name()))
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		r.t.Errorf("files (-want +got):\n%s", d)
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

// file returns a file of the volume; put writes one.
func (r *fixture) file(name string) string {
	r.t.Helper()
	data, err := os.ReadFile(r.options.path(name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(data)
}

func (r *fixture) put(name, content string) {
	r.t.Helper()
	if err := os.WriteFile(r.options.path(name), []byte(content), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

var certificate = strings.TrimSpace(testkit.OtherCA)

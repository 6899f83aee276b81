package receiver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/internal/secret"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	taskARN    = "arn:aws:ecs:us-east-1:123456789012:task/shop/2f1e"
	clusterARN = "arn:aws:ecs:us-east-1:123456789012:cluster/shop"
	port       = 8080
)

// errHang is a request that is never answered.
var errHang = errors.New("no answer")

// fixture is all that a receiver meets, in memory: a broker that pushes, a backend that
// knows the live tokens, and the task's metadata.
type fixture struct {
	t       testing.TB
	file    string
	log     *testkit.Log
	options Options
	// backend is the one of the tokens, whose life is ttl; with a period they are renewed.
	backend string
	ttl     time.Duration
	endless bool // tokens do not expire
	period  time.Duration
	// fault, if set, decides about a request before the broker sees it: an answer or an
	// error in its place, or that the broker's answer is lost.
	fault func(op string) (answer *http.Response, lost bool, err error)
	// pushFault, if set, decides about a push that it does not arrive, or that its answer
	// does not.
	pushFault func() (before, after bool)
	// noPush lets the broker accept requests that it never answers by a push.
	noPush bool
	// silent is until when the task metadata cannot be read.
	silent time.Time

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu         sync.Mutex
	port       *pipeListener // the open callback port
	grants     map[string]*fakeGrant
	live       map[string]time.Time
	secrets    []string // all that were made, and handles
	tokens     int
	calls      []string
	pushes     []int
	stopped    bool // the application
	revokeFail int
	deny       int // look-ups whose answer is that the token does not exist
	renewErr   error
	mostLive   int
}

type fakeGrant struct {
	id      string
	request TokenRequest
	handle  secret.Value
	made    string // the token, when it was redeemed
	state   string
	expires time.Time
}

func newFixture(t testing.TB) *fixture {
	w := &fixture{
		t: t, file: filepath.Join(t.TempDir(), "token"), log: new(testkit.Log),
		backend: backend.ConsulLogin, ttl: time.Hour,
		grants: map[string]*fakeGrant{}, live: map[string]time.Time{},
	}
	w.options = Options{File: w.file, Port: port, Limit: 5 * time.Minute,
		StopTimeout: taskdef.DefaultStopTimeout * time.Second}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// close ends the goroutines of the fixture.
func (w *fixture) close() {
	w.cancel()
	w.running.Wait()
}

func (w *fixture) run(ctx context.Context) error {
	broker, err := NewClient(ClientOptions{Address: "https://broker", Transport: w})
	if err != nil {
		w.t.Fatal(err)
	}
	log := hclog.New(&hclog.LoggerOptions{Output: w.log, Level: hclog.Trace})
	return Run(ctx, w.options, Deps{
		FirstTask: func(ctx context.Context, limit time.Duration) (workload.Task, error) {
			return awsutil.FirstTask(ctx, log, w.Task, limit)
		},
		Self: func() string { return "token-receive" }, Client: broker, Listen: w.listen,
		Actions: map[string]TokenActions{
			backend.ConsulLogin: {Alive: w.exists, Revoke: w.revoke},
			backend.ConsulACL:   {},
			backend.Vault:       {Renew: w.renew, Revoke: w.revoke},
		},
		AwaitStopped: func(ctx context.Context, which func(workload.Task) []workload.Container) ([]string, error) {
			return awsutil.AwaitStopped(ctx, log, w.Task, awsutil.AwaitPause, which)
		},
		Log: log,
	})
}

// start runs a receiver that stays until stop, which returns its result.
func (w *fixture) start() (stop func() error) {
	w.options.Stay = true
	ctx, cancel := context.WithCancel(w.ctx)
	result := make(chan error, 1)
	w.running.Go(func() { result <- w.run(ctx) })
	return func() error {
		cancel()
		return <-result
	}
}

// Task returns the metadata of the task: this container and the application.
func (w *fixture) Task(context.Context) (workload.Task, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Now().Before(w.silent) {
		return workload.Task{}, errors.New("no metadata")
	}
	app := workload.Container{Name: "app", DesiredStatus: "RUNNING", KnownStatus: "RUNNING"}
	if w.stopped {
		app.DesiredStatus, app.KnownStatus = "STOPPED", "STOPPED"
	}
	self := workload.Container{Name: "token-receive", DesiredStatus: "RUNNING", KnownStatus: "RUNNING"}
	return workload.Task{TaskARN: taskARN, Cluster: "shop", Containers: []workload.Container{self, app}}, nil
}

// stop ends the application.
func (w *fixture) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
}

func (w *fixture) setNoPush(no bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noPush = no
}

// count notes how many tokens live at most. The caller holds mu.
func (w *fixture) count() {
	maps.DeleteFunc(w.live, func(_ string, expires time.Time) bool { return !time.Now().Before(expires) })
	w.mostLive = max(w.mostLive, len(w.live))
}

func (w *fixture) alive(token string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	expires, ok := w.live[token]
	return ok && time.Now().Before(expires)
}

func (w *fixture) liveTokens() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count()
	return len(w.live)
}

func (w *fixture) revoke(_ context.Context, token secret.Value) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.revokeFail > 0 {
		w.revokeFail--
		return errors.New("no leader")
	}
	delete(w.live, token.Reveal())
	return nil
}

func (w *fixture) exists(_ context.Context, token secret.Value) (bool, error) {
	w.mu.Lock()
	denied := w.deny > 0
	w.deny--
	w.mu.Unlock()
	return !denied && w.alive(token.Reveal()), nil
}

func (w *fixture) renew(_ context.Context, token secret.Value) (time.Duration, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, "renew")
	if w.renewErr != nil {
		return 0, w.renewErr
	}
	w.live[token.Reveal()] = time.Now().Add(w.period)
	return w.period, nil
}

// called counts the calls with a prefix.
func (w *fixture) called(prefix string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, c := range w.calls {
		if strings.HasPrefix(c, prefix) {
			n++
		}
	}
	return n
}

// made returns how many tokens were made.
func (w *fixture) made() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tokens
}

// most returns how many tokens lived at one time.
func (w *fixture) most() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mostLive
}

// answered returns the statuses of the pushes so far.
func (w *fixture) answered() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.pushes)
}

// open reports whether the callback port is open.
func (w *fixture) open() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.port != nil
}

// read returns the token file, as the application reads it.
func (w *fixture) read() string {
	data, err := os.ReadFile(w.file)
	if err != nil {
		w.t.Error(err)
	}
	return string(data)
}

// wantNoSecrets fails when a secret is in the log or in a file other than the token file.
func (w *fixture) wantNoSecrets() {
	w.t.Helper()
	record, err := os.ReadFile(w.file + ".json")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Error(err)
	}
	entries, err := os.ReadDir(filepath.Dir(w.file))
	if err != nil {
		w.t.Error(err)
	}
	for _, e := range entries {
		if !slices.Contains([]string{"token", "token.json"}, e.Name()) {
			w.t.Errorf("file %s was left", e.Name())
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.secrets {
		if strings.Contains(w.log.String(), s) || bytes.Contains(record, []byte(s)) {
			w.t.Errorf("secret %s is in the log or in the record", s)
		}
	}
}

// pipeListener is a port in memory.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func (w *fixture) listen(_ context.Context, wanted int) (net.Listener, error) {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	if wanted != port || w.port != nil {
		return nil, fmt.Errorf("port %d: %w", wanted, syscall.EADDRINUSE)
	}
	w.port = l
	l.close = sync.OnceFunc(func() {
		close(l.closed)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.port = nil
	})
	return l, nil
}

func (w *fixture) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	w.mu.Lock()
	l := w.port
	w.mu.Unlock()
	if l == nil {
		return nil, syscall.ECONNREFUSED
	}
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.close(); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{Port: port} }

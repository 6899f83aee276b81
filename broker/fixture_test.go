package broker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/internal/secret"
	"github.com/meshtask/consul-ecs/taskdef"
)

var errFault = errors.New("fault")

const (
	clusterARN = "arn:aws:ecs:us-east-1:123456789012:cluster/shop"
	revisionOf = "arn:aws:ecs:us-east-1:123456789012:task-definition/web:7"
)

func taskARN(n int) string {
	return fmt.Sprintf("arn:aws:ecs:us-east-1:123456789012:task/shop/%032x", n)
}

// buffer is a log that goroutines write.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// fakeECS has tasks and revisions.
type fakeECS struct {
	mu       sync.Mutex
	tasks    map[string]*types.Task
	labels   map[string]string
	fault    func() error
	defFault func() error // of DescribeTaskDefinition
	calls    []int        // tasks of each call of DescribeTasks
	defs     int
	// described, if any, is the answer of DescribeTaskDefinition, and text its JSON.
	described *taskdef.TaskDefinition
	text      []byte
}

// fail lets each call of DescribeTasks fail.
func (e *fakeECS) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fault = func() error { return err }
}

func (e *fakeECS) DescribeTasks(_ context.Context, _ string, arns []string) (*ecs.DescribeTasksOutput, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, len(arns))
	if e.fault != nil {
		if err := e.fault(); err != nil {
			return nil, err
		}
	}
	out := &ecs.DescribeTasksOutput{}
	for _, arn := range arns {
		if t := e.tasks[arn]; t != nil {
			out.Tasks = append(out.Tasks, *t)
		} else {
			out.Failures = append(out.Failures, types.Failure{Arn: aws.String(arn), Reason: aws.String("MISSING")})
		}
	}
	return out, nil
}

func (e *fakeECS) DescribeTaskDefinition(_ context.Context, arn string) ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.defs++
	if e.defFault != nil {
		return nil, e.defFault()
	}
	if e.text != nil {
		return e.text, nil
	}
	if e.described != nil {
		return definitionText(e.described)
	}
	return definitionText(&taskdef.TaskDefinition{
		TaskDefinitionARN: arn, ContainerDefinitions: []taskdef.Container{{Name: "app", DockerLabels: e.labels}},
	})
}

func definitionText(d *taskdef.TaskDefinition) ([]byte, error) {
	tags := d.Tags
	c := *d
	c.Tags = nil
	return json.Marshal(map[string]any{"taskDefinition": c, "tags": tags})
}

// change changes a task, which is there after it.
func (e *fakeECS) change(arn string, change func(*types.Task)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := runningTask(arn, "10.0.0.1")
	if old := e.tasks[arn]; old != nil {
		*t = *old // answers that were given stay as they are
	}
	change(t)
	e.tasks[arn] = t
}

func runningTask(arn, ip string) *types.Task {
	return &types.Task{
		TaskArn: aws.String(arn), ClusterArn: aws.String(clusterARN), TaskDefinitionArn: aws.String(revisionOf),
		DesiredStatus: aws.String("RUNNING"), LastStatus: aws.String("RUNNING"),
		AvailabilityZone: aws.String("us-east-1a"),
		Group:            aws.String("service:web-service"), StartedBy: aws.String("ecs-svc/1"),
		Attachments: interfaceAt(ip),
		Overrides:   &types.TaskOverride{ContainerOverrides: []types.ContainerOverride{{Name: aws.String("app")}}},
	}
}

func interfaceAt(ip string) []types.Attachment {
	return []types.Attachment{{
		Type: aws.String("ElasticNetworkInterface"), Status: aws.String("ATTACHED"),
		Details: []types.KeyValuePair{{Name: aws.String("subnetId"), Value: aws.String("s")},
			{Name: aws.String("privateIPv4Address"), Value: aws.String(ip)}},
	}}
}

// made is a token of the fakeBackend.
type made struct {
	accessor, task, request string
	secret                  string
	expires                 time.Time // or zero
}

func (m made) lives() bool { return m.expires.IsZero() || time.Now().Before(m.expires) }

// fakeBackend makes tokens at redemption.
type fakeBackend struct {
	mu      sync.Mutex
	n       int
	wraps   bool // as Vault: Issue makes the token
	issued  []backend.Request
	tokens  map[string]made
	made    []made // all tokens
	revoked []string
	secrets []string
	fault   func(op string) error
	delay   time.Duration // of a redemption
	period  time.Duration // of a renewal by the holder
	created func(backend.Request)
}

func (f *fakeBackend) failing(op string) error {
	if f.fault == nil {
		return nil
	}
	return f.fault(op)
}

func (f *fakeBackend) Issue(_ context.Context, r backend.Request) (backend.Grant, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.failing("issue"); err != nil {
		return backend.Grant{}, err
	}
	f.n++
	f.issued = append(f.issued, r)
	g := backend.Grant{Request: r, Accessor: fmt.Sprintf("accessor-%d", f.n), Expires: time.Now().Add(backend.GrantTTL)}
	if f.wraps {
		g.Handle = secret.New(fmt.Sprintf("secret-wrapping-%d", f.n))
		f.secrets = append(f.secrets, g.Handle.Reveal())
		f.create(g)
	}
	return g, nil
}

func (f *fakeBackend) create(g backend.Grant) made {
	m := made{
		accessor: g.Accessor, task: g.Request.Task.ARN, request: g.Request.RequestID, secret: "secret-of-" + g.Accessor,
	}
	if g.Request.TTL > 0 {
		m.expires = time.Now().Add(g.Request.TTL)
	}
	f.tokens[m.accessor] = m
	f.made = append(f.made, m)
	f.secrets = append(f.secrets, m.secret)
	return m
}

func (f *fakeBackend) Redeem(_ context.Context, g backend.Grant) (backend.Token, error) {
	<-time.After(f.delay)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.failing("redeem"); err != nil {
		return backend.Token{}, err
	}
	if f.created != nil {
		f.created(g.Request)
	}
	m := f.create(g)
	return backend.Token{Secret: secret.New(m.secret), Accessor: m.accessor, Policies: g.Request.Policies,
		Expires: m.expires, Period: f.period}, nil
}

func (f *fakeBackend) Revoke(_ context.Context, accessor string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.failing("revoke"); err != nil {
		return err
	}
	delete(f.tokens, accessor)
	f.revoked = append(f.revoked, accessor)
	return nil
}

// renew moves the end of a task's tokens.
func (f *fakeBackend) renew(task string, life time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for accessor, m := range f.tokens {
		if m.task == task {
			m.expires = time.Now().Add(life)
			f.tokens[accessor] = m
		}
	}
}

func (f *fakeBackend) Expiry(_ context.Context, accessor string) (time.Time, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.tokens[accessor]
	return m.expires, ok && m.lives(), nil
}

// alive returns the secrets of a task's tokens.
func (f *fakeBackend) alive(task string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, m := range f.tokens {
		if m.task == task && m.lives() {
			all = append(all, m.secret)
		}
	}
	return all
}

func transient() error { return &backend.Error{Op: "ask", Err: errFault} }

// fixture is a broker, its surroundings and the tasks.
type fixture struct {
	t       *testing.T
	options Options
	broker  *Broker
	handler http.Handler
	ecs     *fakeECS
	backend *fakeBackend
	audit   *buffer
	log     *buffer
	stop    func()

	mu     sync.Mutex
	inside map[string]func(*http.Request) int // by address and port: what a task answers to a push
}

func newFixture(t *testing.T, change ...func(*Options)) *fixture {
	t.Helper()
	w := idleWorld(t, change...)
	w.start()
	t.Cleanup(func() { w.stop() })
	return w
}

// idleWorld makes one without a broker.
func idleWorld(t *testing.T, change ...func(*Options)) *fixture {
	t.Helper()
	c, err := awsutil.ParseCluster(clusterARN)
	if err != nil {
		t.Fatal(err)
	}
	w := &fixture{
		t: t, audit: &buffer{}, log: &buffer{}, inside: map[string]func(*http.Request) int{},
		ecs: &fakeECS{tasks: map[string]*types.Task{}, labels: map[string]string{policiesLabel: "app",
			ttlLabel: "1h"}},
		backend: &fakeBackend{tokens: map[string]made{}},
	}
	w.options = Options{
		Rules: Rules{Clusters: []awsutil.Cluster{c}, Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
			MinPort: 1024, MaxPort: 65535, Policies: []string{"app", "default", "web"}},
		Source: w.ecs, Backend: w.backend, BackendName: "fake", Store: &MemoryStore{}, Dial: w.dial, Audit: w.audit,
		Metrics: NewMetrics("test"),
		Log:     hclog.New(&hclog.LoggerOptions{Output: w.log, Level: hclog.Debug}),
	}
	for _, f := range change {
		f(&w.options)
	}
	return w
}

// start starts a broker, with the store of the one before.
func (w *fixture) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broker, w.stop = runBroker(w.t, w.options, nil)
	w.handler = w.broker.Handler()
}

// runBroker runs a broker until stop is called.
func runBroker(t *testing.T, o Options, elector Elector) (b *Broker, stop func()) {
	t.Helper()
	b = New(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := b.Run(ctx, elector); err == nil || ctx.Err() == nil {
			t.Errorf("the broker ended with %v", err)
		}
	}()
	return b, sync.OnceFunc(func() { cancel(); <-done })
}

func (w *fixture) restart() {
	w.stop()
	w.start()
}

// dial connects to what listens inside a task.
func (w *fixture) dial(ctx context.Context, _, address string) (net.Conn, error) {
	w.mu.Lock()
	answer := w.inside[address]
	w.mu.Unlock()
	if answer == nil {
		return nil, errors.New("connection refused")
	}
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		r, err := http.ReadRequest(bufio.NewReader(theirs))
		if err != nil {
			return
		}
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if status := answer(r); status != 0 {
			fmt.Fprintf(theirs, "HTTP/1.1 %d x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status)
		}
	}()
	return ours, nil
}

func (w *fixture) listen(address string, answer func(*http.Request) int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inside[address] = answer
}

// call sends a request to the API from an address.
func (w *fixture) call(method, path, from string, body []byte, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, bytes.NewReader(body))
	r.RemoteAddr = from + ":40000"
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w.mu.Lock()
	handler := w.handler
	w.mu.Unlock()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, r)
	return recorder
}

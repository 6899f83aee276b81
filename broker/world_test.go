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
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/awsutil/ecsread"
	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/broker/grant"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/secret"
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
	mu     sync.Mutex
	tasks  map[string]*types.Task
	labels map[string]string
	fault  func() error
	calls  []int // tasks of each call of DescribeTasks
	defs   int
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

func (e *fakeECS) DescribeTaskDefinition(_ context.Context, arn string) (*types.TaskDefinition, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.defs++
	return &types.TaskDefinition{
		TaskDefinitionArn:    aws.String(arn),
		ContainerDefinitions: []types.ContainerDefinition{{Name: aws.String("app"), DockerLabels: e.labels}},
	}, nil
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
		DesiredStatus: aws.String("RUNNING"), LastStatus: aws.String("RUNNING"), AvailabilityZone: aws.String("us-east-1a"),
		Group: aws.String("service:web-service"), StartedBy: aws.String("ecs-svc/1"), Attachments: interfaceAt(ip),
		Overrides: &types.TaskOverride{ContainerOverrides: []types.ContainerOverride{{Name: aws.String("app")}}},
	}
}

func interfaceAt(ip string) []types.Attachment {
	return []types.Attachment{{
		Type: aws.String("ElasticNetworkInterface"), Status: aws.String("ATTACHED"),
		Details: []types.KeyValuePair{{Name: aws.String("subnetId"), Value: aws.String("s")}, {Name: aws.String("privateIPv4Address"), Value: aws.String(ip)}},
	}}
}

// made is a token of the fakeBackend.
type made struct {
	accessor, task, request string
	secret                  string
	expires                 time.Time
}

// fakeBackend makes tokens at redemption.
type fakeBackend struct {
	mu      sync.Mutex
	n       int
	wraps   bool // as Vault: Issue makes the token
	issued  []backend.Request
	tokens  map[string]made
	revoked []string
	secrets []string
	fault   func(op string) error
	created func(backend.Request)
}

func (*fakeBackend) Name() string { return "fake" }

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
		f.make(g)
	}
	return g, nil
}

func (f *fakeBackend) make(g backend.Grant) made {
	m := made{
		accessor: g.Accessor, task: g.Request.Task.ARN, request: g.Request.RequestID, secret: "secret-of-" + g.Accessor,
		expires: time.Now().Add(g.Request.TTL),
	}
	f.tokens[m.accessor] = m
	f.secrets = append(f.secrets, m.secret)
	return m
}

func (f *fakeBackend) Redeem(_ context.Context, g backend.Grant) (backend.Token, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.failing("redeem"); err != nil {
		return backend.Token{}, err
	}
	if f.created != nil {
		f.created(g.Request)
	}
	m := f.make(g)
	return backend.Token{Secret: secret.New(m.secret), Accessor: m.accessor, Backend: "fake", Policies: g.Request.Policies, Expires: m.expires}, nil
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

func (f *fakeBackend) Lookup(_ context.Context, accessor string) (backend.Token, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.tokens[accessor]
	return backend.Token{Accessor: accessor, Expires: m.expires}, ok && time.Now().Before(m.expires), nil
}

// alive are the secrets of a task's tokens.
func (f *fakeBackend) alive(task string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, m := range f.tokens {
		if m.task == task && time.Now().Before(m.expires) {
			all = append(all, m.secret)
		}
	}
	return all
}

func transient() error { return &backend.Error{Op: "ask", Err: errFault, Class: retry.Retry} }

// world is a broker, its surroundings and the tasks.
type world struct {
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

func newWorld(t *testing.T, change ...func(*Options)) *world {
	t.Helper()
	c, err := ecsread.ParseCluster(clusterARN)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, audit: &buffer{}, log: &buffer{}, inside: map[string]func(*http.Request) int{},
		ecs:     &fakeECS{tasks: map[string]*types.Task{}, labels: map[string]string{PoliciesLabel: "app", TTLLabel: "1h"}},
		backend: &fakeBackend{tokens: map[string]made{}},
	}
	w.options = Options{
		Rules:  Rules{Clusters: []ecsread.Cluster{c}, Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, MinPort: 1024, MaxPort: 65535, Policies: []string{"app", "default", "web"}},
		Source: w.ecs, Backend: w.backend, Store: &Memory{}, Dial: w.dial, Audit: w.audit, Metrics: NewMetrics("test"),
		Log: hclog.New(&hclog.LoggerOptions{Output: w.log, Level: hclog.Debug}),
	}
	for _, f := range change {
		f(&w.options)
	}
	w.start()
	t.Cleanup(func() { w.stop() })
	return w
}

// start starts a broker, with the store of the one before.
func (w *world) start() {
	b, err := New(w.options)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := b.Run(ctx, nil); err == nil || ctx.Err() == nil {
			w.t.Errorf("the broker ended with %v", err)
		}
	}()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broker, w.handler = b, b.Handler()
	w.stop = sync.OnceFunc(func() { cancel(); <-done })
}

func (w *world) restart() {
	w.stop()
	w.start()
}

// dial connects to what listens inside a task.
func (w *world) dial(ctx context.Context, _, address string) (net.Conn, error) {
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

func (w *world) listen(address string, answer func(*http.Request) int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inside[address] = answer
}

// call sends a request to the API from an address.
func (w *world) call(method, path, from string, body []byte, header ...string) *httptest.ResponseRecorder {
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

// client is a task that asks, listens and redeems.
type client struct {
	*world
	arn, ip string
	port    int
	key     grant.Key
	nonce   grant.Nonce
	mu      sync.Mutex
	token   grant.Unwrapped
	pushes  []grant.Push
	handle  secret.Value
	rotates bool
}

// task is a running task with a receiver.
func (w *world) task(n int) *client {
	c := &client{world: w, arn: taskARN(n), ip: fmt.Sprintf("10.0.1.%d", n), port: 8080}
	w.ecs.change(c.arn, func(t *types.Task) { *t = *runningTask(c.arn, c.ip) })
	w.listen(fmt.Sprintf("%s:%d", c.ip, c.port), c.pushed)
	return c
}

// request is the body of a new request.
func (c *client) request() []byte {
	key, err := grant.NewKey()
	if err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.key, c.nonce = key, grant.NewNonce()
	body, err := json.Marshal(grant.TokenRequest{Cluster: clusterARN, TaskARN: c.arn, CallbackPort: c.port, Nonce: c.nonce, PublicKey: key.Public()})
	if err != nil {
		c.t.Fatal(err)
	}
	return body
}

// ask posts a new request.
func (c *client) ask() *httptest.ResponseRecorder {
	return c.call(http.MethodPost, "/v1/token", c.ip, c.request())
}

func (c *client) rotate() *httptest.ResponseRecorder {
	bearer := c.held()
	c.mu.Lock()
	c.rotates = true
	c.mu.Unlock()
	return c.call(http.MethodPost, "/v1/rotate", c.ip, c.request(), "Authorization", "Bearer "+bearer)
}

func (c *client) held() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.token.Secret.Reveal()
}

// lose is a restarted container.
func (c *client) lose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = grant.Unwrapped{}
}

// open checks a push and unseals the handle.
func (c *client) open(r *http.Request) (grant.Push, int) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return grant.Push{}, http.StatusBadRequest
	}
	p, err := grant.DecodePush(body)
	if err != nil {
		return p, http.StatusBadRequest
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pushes = append(c.pushes, p)
	switch {
	case !bytes.Equal(p.Nonce, c.nonce):
		return p, http.StatusForbidden
	case !c.token.Secret.Empty() && !c.rotates:
		return p, http.StatusConflict
	}
	if c.handle, err = c.key.Open(p.Token, c.arn, p.Nonce); err != nil {
		return p, http.StatusForbidden
	}
	return p, http.StatusOK
}

// pushed is a receiver.
func (c *client) pushed(r *http.Request) int {
	p, status := c.open(r)
	if status != http.StatusOK {
		return status
	}
	answer := c.unwrap(p.RequestID)
	if answer.Code != http.StatusOK {
		return http.StatusBadGateway
	}
	u, err := grant.DecodeUnwrapped(answer.Body.Bytes())
	if err != nil {
		c.t.Error(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token, c.rotates = u, false
	return http.StatusOK
}

func (c *client) unwrap(requestID string) *httptest.ResponseRecorder {
	c.mu.Lock()
	handle := c.handle
	c.mu.Unlock()
	body, err := grant.UnwrapRequest{Handle: handle, RequestID: requestID}.Encode()
	if err != nil {
		c.t.Error(err)
	}
	return c.call(http.MethodPost, "/v1/unwrap", c.ip, body)
}

// accepted is the ID of a request that was accepted.
func accepted(t *testing.T, r *httptest.ResponseRecorder) string {
	t.Helper()
	if r.Code != http.StatusAccepted {
		t.Fatalf("answer %d %s, want 202", r.Code, r.Body)
	}
	a, err := grant.DecodeAccepted(r.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return a.RequestID
}

// wantRefused checks an error of the API.
func wantRefused(t *testing.T, r *httptest.ResponseRecorder, status int, code string) {
	t.Helper()
	e, err := grant.DecodeError(r.Body.Bytes())
	if r.Code != status || err != nil || e.Code != code || e.RequestID == "" {
		t.Errorf("answer %d %s (%v), want %d with code %q and a request_id", r.Code, r.Body, err, status, code)
	}
}

func (w *world) state(id string) grant.Status {
	w.t.Helper()
	s, err := grant.DecodeStatus(w.call(http.MethodGet, "/v1/token/"+id, "10.9.9.9", nil).Body.Bytes())
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// decisions are the phases of a request in the audit log.
func (w *world) decisions(id string) string {
	var all []string
	for text := range strings.Lines(w.audit.String()) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			w.t.Errorf("audit line %q: %v", text, err)
		}
		if l.Request == id {
			word := l.Decision
			if l.Alarm {
				word += "!"
			}
			all = append(all, word)
		}
	}
	return strings.Join(all, " ")
}

// wantNoSecrets checks the logs.
func (w *world) wantNoSecrets() {
	w.t.Helper()
	logs := w.audit.String() + w.log.String()
	for _, s := range w.backend.secrets {
		if strings.Contains(logs, s) {
			w.t.Errorf("a log has the secret %s", s)
		}
	}
}

// in runs a test with a world in a bubble.
func in(t *testing.T, test func(t *testing.T, w *world), change ...func(*Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, change...)
		synctest.Wait()
		test(t, w)
		w.stop()
		w.wantNoSecrets()
	})
}

// pass lets virtual time go by.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

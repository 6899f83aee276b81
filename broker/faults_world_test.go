package broker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/broker/receiver"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
)

const (
	// faultWindow is how long faults happen, and then do not happen.
	faultWindow = 10 * time.Second
	// mostLag is how old an answer of DescribeTasks may be.
	mostLag = 5 * time.Second
)

// chance is a source of random decisions. Faults happen in windows until end.
type chance struct {
	mu         sync.Mutex
	rng        *rand.Rand
	start, end time.Time
}

func (c *chance) of(percent int) bool { return c.open() && c.n(1000) < 10*percent }

func (c *chance) open() bool {
	now := time.Now()
	return !now.Before(c.start) && now.Before(c.end) && now.Sub(c.start)%(2*faultWindow) < faultWindow
}

// oneIn reports true in one of n cases while faults happen.
func (c *chance) oneIn(n int) bool { return c.open() && c.n(n) == 0 }

func (c *chance) n(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rng.IntN(n)
}

func (c *chance) pause(most time.Duration) {
	<-time.After(time.Duration(1 + c.n(int(most))))
}

// laggingECS answers with states of the last seconds, with none and with errors.
type laggingECS struct {
	*fakeECS
	s *schedule

	mu      sync.Mutex
	history map[string][]ecsState
}

type ecsState struct {
	at   time.Time
	task types.Task
}

func (e *laggingECS) change(arn string, change func(*types.Task)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := *runningTask(arn, "10.0.0.1")
	if h := e.history[arn]; len(h) > 0 {
		t = h[len(h)-1].task
	}
	change(&t)
	e.history[arn] = append(e.history[arn], ecsState{time.Now(), t})
}

func (e *laggingECS) describe(p *brokerProcess, arns []string) (*ecs.DescribeTasksOutput, error) {
	c := e.s.chance
	if c.of(20) {
		c.pause(10 * time.Second)
	}
	if err := p.step(); err != nil || c.of(10) {
		return nil, errFault
	}
	seen := time.Now().Add(-time.Duration(c.n(int(mostLag))))
	e.mu.Lock()
	defer e.mu.Unlock()
	out := &ecs.DescribeTasksOutput{}
	for _, arn := range arns {
		h := e.history[arn]
		i := slices.IndexFunc(h, func(s ecsState) bool { return s.at.After(seen) })
		if i < 0 {
			i = len(h)
		}
		if i > 0 {
			out.Tasks = append(out.Tasks, h[i-1].task)
		} else {
			out.Failures = append(out.Failures, types.Failure{Arn: aws.String(arn), Reason: aws.String("MISSING")})
		}
	}
	return out, p.step()
}

// DescribeTasks, and the methods of the store and the backend below, are those of one
// process of the broker.
func (p *brokerProcess) DescribeTasks(_ context.Context, _ string, arns []string) (*ecs.DescribeTasksOutput, error) {
	return p.s.tasks.describe(p, arns)
}

func (p *brokerProcess) DescribeTaskDefinition(ctx context.Context, arn string) ([]byte, error) {
	if err := p.step(); err != nil || p.s.chance.of(10) {
		return nil, errFault
	}
	return p.s.ecs.DescribeTaskDefinition(ctx, arn)
}

func (p *brokerProcess) Load(ctx context.Context) ([]Record, error) {
	if err := p.step(); err != nil || p.s.chance.of(10) {
		return nil, errFault
	}
	records, err := p.s.store.Load(ctx)
	for i := range records {
		shift(records[i].Tokens, -p.skew)
	}
	return records, err
}

func (p *brokerProcess) Save(ctx context.Context, r Record) (uint64, error) {
	if err := p.step(); err != nil || p.s.chance.of(5) {
		return 0, errFault
	}
	if !p.s.lock.heldBy(p) {
		return 0, ErrStale
	}
	r = r.Clone()
	shift(r.Tokens, p.skew)
	version, err := p.s.store.Save(ctx, r)
	if stepErr := p.step(); stepErr != nil || p.s.chance.of(5) {
		return 0, errFault
	}
	return version, err
}

func (p *brokerProcess) Read(ctx context.Context, taskARN string) (Record, error) {
	if err := p.step(); err != nil || p.s.chance.of(10) {
		return Record{}, errFault
	}
	r, err := p.s.store.Read(ctx, taskARN)
	shift(r.Tokens, -p.skew)
	return r, err
}

func (p *brokerProcess) Issue(ctx context.Context, r backend.Request) (backend.Grant, error) {
	if err := p.step(); err != nil {
		return backend.Grant{}, err
	}
	g, err := p.s.backend.Issue(ctx, r)
	if stepErr := p.step(); stepErr != nil && err == nil {
		p.s.orphan(g.Accessor)
		return backend.Grant{}, stepErr
	}
	return g, err
}

func (p *brokerProcess) Redeem(ctx context.Context, g backend.Grant) (backend.Token, error) {
	if p.s.chance.of(10) {
		p.s.chance.pause(12 * time.Second) // longer than any side waits for it
	}
	if err := p.step(); err != nil {
		return backend.Token{}, err
	}
	t, err := p.s.backend.Redeem(ctx, g)
	if err != nil {
		return t, err
	}
	if stepErr := p.step(); stepErr != nil {
		if p.s.login {
			p.s.orphan(t.Accessor) // Consul made it, and only this process had the secret
		}
		return backend.Token{}, stepErr
	}
	p.Adopt(t)
	return t, nil
}

func (p *brokerProcess) Adopt(t backend.Token) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known[t.Accessor] = true
}

func (p *brokerProcess) Revoke(ctx context.Context, accessor string) error {
	if err := p.step(); err != nil {
		p.forget(accessor)
		return err
	}
	p.mu.Lock()
	known := p.known[accessor]
	p.mu.Unlock()
	if unknown := p.s.login && !known; unknown && p.s.exists(accessor) {
		p.s.orphan(accessor)
		return &backend.Error{Op: "revoke", Err: consulutil.WithClass(backend.ErrPrivilege, retry.Permanent)}
	}
	err := p.s.revokes.Revoke(ctx, accessor)
	if err != nil && !p.s.lock.heldBy(p) {
		p.forget(accessor) // another broker leads
	}
	if stepErr := p.step(); stepErr != nil {
		p.forget(accessor)
		return stepErr
	}
	return err
}

// forget ends a process, or its leadership, that has not revoked a token, as far as it
// knows.
func (p *brokerProcess) forget(accessor string) {
	if p.s.backend.wraps && !p.s.recorded(accessor) {
		p.s.orphan(accessor) // Vault made it, and nothing else knows it
	}
}

func (p *brokerProcess) Expiry(ctx context.Context, accessor string) (time.Time, bool, error) {
	if err := p.step(); err != nil {
		return time.Time{}, false, err
	}
	return p.s.backend.Expiry(ctx, accessor)
}

// dial connects to a task.
func (p *brokerProcess) dial(ctx context.Context, _, address string) (net.Conn, error) {
	if p.s.chance.of(10) {
		p.s.chance.pause(5 * time.Second)
	}
	if err := p.step(); err != nil || p.s.chance.of(15) {
		return nil, errFault
	}
	conn, err := p.s.connect(ctx, address)
	return brokenConn{conn, p, address}, err
}

// brokenConn loses answers.
type brokenConn struct {
	net.Conn
	p       *brokerProcess
	address string
}

// Write gets a whole push, which anyone in the network can record.
func (c brokenConn) Write(b []byte) (int, error) {
	c.p.s.mu.Lock()
	c.p.s.pushes = append(c.p.s.pushes, recorded{time.Now(), c.address, slices.Clone(b)})
	c.p.s.mu.Unlock()
	return c.Conn.Write(b)
}

// port is the open callback port of a task.
type port struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func newPort(closed func(*port)) *port {
	p := &port{conns: make(chan net.Conn), closed: make(chan struct{})}
	p.close = sync.OnceFunc(func() {
		close(p.closed)
		closed(p)
	})
	return p
}

func (p *port) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *port) Close() error   { p.close(); return nil }
func (p *port) Addr() net.Addr { return &net.TCPAddr{} }

func (s *schedule) connect(ctx context.Context, address string) (net.Conn, error) {
	s.mu.Lock()
	p := s.ports[address]
	s.mu.Unlock()
	if p == nil {
		return nil, syscall.ECONNREFUSED
	}
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// RoundTrip brings a request of a receiver to the broker, whose clock is skewed.
func (r *receiverProcess) RoundTrip(req *http.Request) (*http.Response, error) {
	s := r.task.s
	p := s.serving(req.URL.Host)
	switch {
	case r.step() != nil:
		return nil, &retry.PermanentError{Err: errKilled}
	case s.chance.of(10):
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	case s.chance.of(3):
		<-req.Context().Done()
		return nil, req.Context().Err()
	case p.step() != nil:
		return nil, syscall.ECONNRESET
	}
	body := []byte{}
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
	}
	if req.URL.Path != "/v1/unwrap" {
		s.capture(req, body)
	}
	served := httptest.NewRequest(req.Method, req.URL.Path, bytes.NewReader(body)).WithContext(req.Context())
	served.Header, served.RemoteAddr = req.Header.Clone(), r.task.ip+":40000"
	recorder, done := httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(done)
		p.handler.ServeHTTP(recorder, served)
	}()
	select {
	case <-done:
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	if died := p.step() != nil || r.step() != nil; died || s.chance.of(10) {
		return nil, syscall.ECONNRESET
	}
	return p.skewed(req, recorder)
}

// skewed shifts the times of an answer by the skew of the broker's clock.
func (p *brokerProcess) skewed(req *http.Request, recorder *httptest.ResponseRecorder) (*http.Response, error) {
	answer := recorder.Result()
	answer.Request = req
	answer.Header.Set("Date", time.Now().Add(p.skew).UTC().Format(http.TimeFormat))
	if req.URL.Path != "/v1/unwrap" || answer.StatusCode != http.StatusOK {
		return answer, nil
	}
	u, err := receiver.DecodeUnwrapped(recorder.Body.Bytes())
	if err != nil {
		return nil, err
	}
	if !u.Expires.IsZero() {
		u.Expires = u.Expires.Add(p.skew)
	}
	body, err := u.Encode()
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, err
}

var errKilled = errors.New("the process was killed")

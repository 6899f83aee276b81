package broker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/meshtask/consul-ecs/broker/receiver"
	"github.com/meshtask/consul-ecs/internal/secret"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// client is a task that asks, listens and redeems.
type client struct {
	*fixture
	arn, ip string
	port    int
	key     receiver.Key
	nonce   receiver.Nonce
	mu      sync.Mutex
	token   receiver.Unwrapped
	pushes  []receiver.Push
	handle  secret.Value
	rotates bool
}

// task adds a running task with a receiver.
func (w *fixture) task(n int) *client {
	c := &client{fixture: w, arn: taskARN(n), ip: fmt.Sprintf("10.0.1.%d", n), port: 8080}
	w.ecs.change(c.arn, func(t *types.Task) { *t = *runningTask(c.arn, c.ip) })
	w.listen(fmt.Sprintf("%s:%d", c.ip, c.port), c.pushed)
	return c
}

// request returns the body of a new request.
func (c *client) request() []byte {
	key, err := receiver.NewKey()
	if err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.key, c.nonce = key, receiver.NewNonce()
	body, err := json.Marshal(receiver.TokenRequest{Cluster: clusterARN, TaskARN: c.arn, CallbackPort: c.port,
		Nonce: c.nonce, PublicKey: key.Public()})
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

// lose restarts the container, which has no token then.
func (c *client) lose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = receiver.Unwrapped{}
}

// open checks a push and unseals the handle.
func (c *client) open(r *http.Request) (receiver.Push, int) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return receiver.Push{}, http.StatusBadRequest
	}
	p, err := receiver.DecodePush(body)
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

// pushed answers a push as a receiver does.
func (c *client) pushed(r *http.Request) int {
	p, status := c.open(r)
	if status != http.StatusOK {
		return status
	}
	if status = c.redeem(p.RequestID); status == http.StatusOK || status >= 500 {
		return status
	}
	return http.StatusBadGateway
}

// redeem trades the handle for the token, and returns the status of the broker's answer.
func (c *client) redeem(requestID string) int {
	answer := c.unwrap(requestID)
	if answer.Code != http.StatusOK {
		return answer.Code
	}
	u, err := receiver.DecodeUnwrapped(answer.Body.Bytes())
	if err != nil {
		c.t.Error(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token, c.rotates = u, false
	return http.StatusOK
}

func (c *client) unwrap(requestID string) *httptest.ResponseRecorder {
	return c.unwrapFrom(c.ip, requestID)
}

// unwrapFrom presents the handle from an address.
func (c *client) unwrapFrom(ip, requestID string) *httptest.ResponseRecorder {
	c.mu.Lock()
	handle := c.handle
	c.mu.Unlock()
	body, err := receiver.UnwrapRequest{Handle: handle, RequestID: requestID}.Encode()
	if err != nil {
		c.t.Error(err)
	}
	return c.call(http.MethodPost, "/v1/unwrap", ip, body)
}

// accepted returns the ID of a request that was accepted.
func accepted(t *testing.T, r *httptest.ResponseRecorder) string {
	t.Helper()
	if r.Code != http.StatusAccepted {
		t.Fatalf("answer %d %s, want 202", r.Code, r.Body)
	}
	a, err := receiver.DecodeAccepted(r.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return a.RequestID
}

// wantRefused checks an error of the API.
func wantRefused(t *testing.T, r *httptest.ResponseRecorder, status int, code string) {
	t.Helper()
	e, err := receiver.DecodeRefusal(r.Body.Bytes())
	if err != nil || e.RequestID == "" {
		t.Errorf("answer %d %s (%v), want a refusal with a request_id", r.Code, r.Body, err)
	}
	if got, want := fmt.Sprint(r.Code, " ", e.Code), fmt.Sprint(status, " ", code); got != want {
		t.Errorf("refused with %s, want %s: %s", got, want, r.Body)
	}
}

// state returns the status of a request, as its task reads it.
func (w *fixture) state(id string) receiver.Status {
	w.t.Helper()
	address := elsewhere
	if r := w.broker.leadership.Load().table.request(id); r != nil {
		address = r.subject.task.Address.String()
	}
	s, err := receiver.DecodeStatus(w.call(http.MethodGet, "/v1/token/"+id, address, nil).Body.Bytes())
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// decisions returns the phases of a request in the audit log.
func (w *fixture) decisions(id string) string {
	var all []string
	for _, l := range w.lines() {
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
func (w *fixture) wantNoSecrets() {
	w.t.Helper()
	logs := w.audit.String() + w.log.String()
	w.backend.mu.Lock()
	defer w.backend.mu.Unlock()
	for _, s := range w.backend.secrets {
		if form := secret.NewLeaks(secret.New(s)).Find(logs); form != "" {
			w.t.Errorf("a log has the secret %s, %s", s, form)
		}
	}
}

// wantState holds the state of a request against state.
func (w *fixture) wantState(id, state string) {
	w.t.Helper()
	if s := w.state(id); s.State != state {
		w.t.Errorf("%+v, want state %s", s, state)
	}
}

// wantLive holds the secrets of a task's live tokens against those wanted, in any order.
func (c *client) wantLive(secrets ...string) {
	c.t.Helper()
	alive := c.backend.alive(c.arn)
	slices.Sort(alive)
	slices.Sort(secrets)
	testkit.Equal(c.t, "live tokens of "+c.arn, alive, secrets)
}

// scenario is a test with a fixture in a bubble.
type scenario func(t *testing.T, w *fixture)

// in runs a scenario.
func in(t *testing.T, test scenario, change ...func(*Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, change...)
		synctest.Wait()
		test(t, w)
		w.stop()
		w.wantNoSecrets()
	})
}

// inEach runs scenarios as subtests that have the names of their functions.
func inEach(t *testing.T, scenarios []scenario, change ...func(*Options)) {
	t.Helper()
	for _, test := range scenarios {
		name := runtime.FuncForPC(reflect.ValueOf(test).Pointer()).Name()
		t.Run(name[strings.LastIndexByte(name, '.')+1:], func(t *testing.T) {
			t.Parallel()
			in(t, test, change...)
		})
	}
}

// advance lets virtual time go by.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

package awstest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/meshtask/consul-ecs/localecs/ecs/simulated"
)

// ECSOptions describe the ECS; in the zero ECSOptions nothing takes time, nothing is
// late and nothing is throttled.
type ECSOptions = simulated.Options

// ECSCall is a call of the ECS API, as Fail sees it.
type ECSCall struct {
	// Operation is ListTasks, DescribeTasks and so on.
	Operation string
	// Number counts the calls of this operation, from 1.
	Number int
}

// ECS is the ECS API of one account, and a user who may call all of it. Its
// methods fail the test where they cannot do what they are to do.
type ECS struct {
	// Simulator has the calls of the API as methods too.
	Simulator *Simulator

	t      testing.TB
	server func() *httptest.Server

	mu    sync.Mutex
	calls map[string]int
	fail  func(ECSCall) (status int, code string)
}

// NewECS returns an ECS with the empty cluster "default", which ends with the test.
func NewECS(t testing.TB, o ECSOptions) *ECS {
	t.Helper()
	w, err := OpenSimulator(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	e := &ECS{Simulator: w, t: t, calls: map[string]int{}}
	e.server = sync.OnceValue(func() *httptest.Server {
		s := httptest.NewServer(e)
		t.Cleanup(s.Close)
		return s
	})
	return e
}

// Run runs tasks, waits until they are RUNNING, and returns their ARNs.
func (e *ECS) Run(g TaskGroup) []string {
	e.t.Helper()
	arns, err := e.Simulator.Run(g)
	e.must(err)
	return arns
}

// Register registers a task definition, a JSON document as for AWS's command line.
func (e *ECS) Register(document string) {
	e.t.Helper()
	e.must(e.Simulator.Register(document))
}

// Stop stops tasks as StopTask does, and waits until they are STOPPED.
func (e *ECS) Stop(tasks ...string) {
	e.t.Helper()
	e.must(e.Simulator.Stop(tasks...))
}

func (e *ECS) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

// Fail makes calls fail: those for which fail returns a status that is not 0 are
// answered with it and an AWS error code, such as 400 ThrottlingException or 500
// ServerException. It may block for a slow call, and may be called by several
// goroutines; nil ends it.
func (e *ECS) Fail(fail func(ECSCall) (status int, code string)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fail = fail
}

// Calls returns how often an operation was called, failures included.
func (e *ECS) Calls(operation string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.calls[operation]
}

// ServeHTTP serves the ECS API, STS and IAM.
func (e *ECS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	e.mu.Lock()
	e.calls[operation]++
	call, fail := ECSCall{Operation: operation, Number: e.calls[operation]}, e.fail
	e.mu.Unlock()
	if fail != nil {
		if status, code := fail(call); status != 0 {
			w.Header().Set("Content-Type", "application/x-amz-json-1.1")
			w.WriteHeader(status)
			// an error means the client is gone
			_, _ = w.Write([]byte(`{"__type":"` + code + `","message":"set by the test"}`))
			return
		}
	}
	e.Simulator.ServeHTTP(w, r)
}

// URL returns the address of the ECS API on loopback, for AWS_ENDPOINT_URL_ECS. It listens from the first call on.
func (e *ECS) URL() string { return e.server().URL }

// Config returns the configuration of a client of AWS's SDK: region, key, and an HTTP client that stays within the
// process. To go through a socket, set BaseEndpoint to URL and HTTPClient to nil.
func (e *ECS) Config() aws.Config {
	key := e.Simulator.Key
	return aws.Config{
		Region: e.Simulator.Region(), BaseEndpoint: aws.String("http://ecs.localecs"),
		HTTPClient: &http.Client{Transport: within{e}},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: key.AccessKeyID, SecretAccessKey: key.Secret}, nil
		}),
	}
}

// within is a transport without a network.
type within struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (w within) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	if r.Body == nil {
		r.Body = http.NoBody
	}
	if r.Host == "" { // as a server has it
		r.Host = r.URL.Host
	}
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, r)
	res := recorder.Result()
	res.Request = r
	return res, nil
}

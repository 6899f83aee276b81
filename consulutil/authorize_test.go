package consulutil

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// authorizeServer is a server that allows what has an even number, and keeps what it was
// asked.
type authorizeServer struct {
	*httptest.Server
	mu      sync.Mutex
	heads   []string
	batches []int
}

func newAuthorizeServer(t *testing.T) *authorizeServer {
	t.Helper()
	j := &authorizeServer{}
	j.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked []map[string]any
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		token, shown := r.Header["X-Consul-Token"]
		j.heads = append(j.heads,
			fmt.Sprint(r.Method, " ", r.URL, " ", token, shown, " ", r.Header.Get("Content-Type")))
		j.batches = append(j.batches, len(asked))
		for _, a := range asked {
			if len(a) != 3 {
				t.Errorf("fields of a question: %v", a)
			}
			a["Allow"] = strings.ContainsAny(a["Segment"].(string)[len(a["Segment"].(string))-1:], "02468")
		}
		_ = json.NewEncoder(w).Encode(asked)
	}))
	t.Cleanup(j.Close)
	return j
}

func authorizer(t *testing.T, address, datacenter string) *Authorizer {
	t.Helper()
	a, err := NewAuthorizer(Options{Address: address}, datacenter)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func questions(n int) []aclrules.Query {
	var all []aclrules.Query
	for i := range n {
		all = append(all,
			aclrules.Query{Resource: aclrules.Service, Segment: fmt.Sprint("web-", i), Access: aclrules.ReadAccess})
	}
	return all
}

func TestAuthorizeAsksInBatches(t *testing.T) {
	t.Parallel()
	for n, want := range map[int][]int{0: nil, 1: {1}, 64: {64}, 65: {64, 1}, 130: {64, 64, 2}} {
		j := newAuthorizeServer(t)
		allowed, err := authorizer(t, j.URL, "").Authorize(context.Background(), "secret", questions(n))
		if err != nil {
			t.Fatal(err)
		}
		testkit.Equal(t, "answers", len(allowed), n)
		if !slices.Equal(j.batches, want) {
			t.Errorf("%d: batches: got %v, want %v", n, j.batches, want)
		}
		for i, got := range allowed {
			if got != (i%2 == 0) {
				t.Fatalf("%d of %d: %v", i, n, got)
			}
		}
	}
}

func TestAuthorizeByHandMadePost(t *testing.T) {
	t.Parallel()
	j := newAuthorizeServer(t)
	address := strings.TrimPrefix(j.URL, "http://")
	for _, c := range []struct{ address, token, datacenter, want string }{
		{address, "secret", "", "POST /v1/internal/acl/authorize [secret] true application/json"},
		{j.URL + "/", "", "", "POST /v1/internal/acl/authorize [] false application/json"},
		{address, "secret", "dc 2", "POST /v1/internal/acl/authorize?dc=dc+2 [secret] true application/json"},
	} {
		if _, err := authorizer(t, c.address, c.datacenter).Authorize(context.Background(), c.token,
			questions(1)); err != nil {
			t.Fatal(err)
		}
		if got := j.heads[len(j.heads)-1]; got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestAuthorizeErrors(t *testing.T) {
	t.Parallel()
	good := `[{"Resource":"service","Segment":"web-0","Access":"read","Allow":true}]`
	for name, c := range map[string]struct {
		status int
		body   string
		check  func(error) bool
		want   string
	}{
		"no such endpoint": {404, "Invalid URL path: not a recognized HTTP API endpoint",
			func(err error) bool { return errors.Is(err, ErrNoAuthorize) },
			"the server has no /v1/internal/acl/authorize"},
		"unknown token": {403, "ACL not found", UnknownToken, "403"},
		"ACLs off":      {401, "ACL support disabled", ACLsDisabled, "401"},
		"not allowed":   {405, "method PUT not allowed", nil, "405"},
		"broken": {500, "No path to datacenter\n",
			func(err error) bool { return Reason(err) == "No path to datacenter" }, "500"},
		"not JSON": {200, "<html>", nil, "read the answer"},
		"too few":  {200, "[]", nil, "got 0 results for 1 queries"},
		"too many": {200, `[{},{}]`, nil, "got 2 results for 1 queries"},
		"of another": {200, strings.Replace(good, "web-0", "web-1", 1), nil,
			`got a result for service "web-1" read, want one for service "web-0" read`},
		"endless": {200, "[" + strings.Repeat(" ", maxAnswer) + good[1:], nil, "read the answer"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			io.WriteString(w, c.body)
		}))
		allowed, err := authorizer(t, server.URL, "").Authorize(context.Background(), "", questions(1))
		server.Close()
		if allowed != nil {
			t.Errorf("%s: got answers %v", name, allowed)
		}
		if want := "check the token's permissions at the server: "; !strings.HasPrefix(fmt.Sprint(err), want) {
			t.Errorf("%s: got %v, want it to begin with %q", name, err, want)
		}
		testkit.ErrorContains(t, err, c.want)
		if c.check != nil && !c.check(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if ACLsDisabled(api.StatusError{Code: 401, Body: "who are you?"}) {
		t.Error("every 401 is not a server without ACLs")
	}
}

// One bad batch fails the whole call: half of the answers would look like all of them.
func TestAuthorizeGivesAllOrNothing(t *testing.T) {
	t.Parallel()
	j := newAuthorizeServer(t)
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n++; n > 1 {
			w.WriteHeader(500)
			return
		}
		j.Config.Handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	if allowed, err := authorizer(t, server.URL, "").Authorize(context.Background(), "",
		questions(65)); allowed != nil || Status(err) != 500 {
		t.Errorf("got %v, %v", allowed, err)
	}
}

func TestAuthorizeWithoutAServer(t *testing.T) {
	t.Parallel()
	j := newAuthorizeServer(t)
	a := authorizer(t, j.URL, "")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := a.Authorize(ctx, "", questions(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	j.Close()
	var dial *net.OpError
	if _, err := a.Authorize(context.Background(), "", questions(1)); !errors.As(err, &dial) || Status(err) != 0 {
		t.Errorf("closed: %v", err)
	}
	if _, err := NewAuthorizer(Options{Address: "http://"}, ""); err == nil {
		t.Error("an address without a host was accepted")
	}
}

// A server behind a socket file has no host name.
func TestAuthorizeThroughASocket(t *testing.T) {
	t.Parallel()
	j := newAuthorizeServer(t)
	path := filepath.Join(t.TempDir(), "consul.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: j.Config.Handler}}
	server.Start()
	defer server.Close()
	if allowed, err := authorizer(t, "unix://"+path, "").Authorize(context.Background(), "",
		questions(2)); err != nil || !slices.Equal(allowed, []bool{true, false}) {
		t.Errorf("got %v, %v", allowed, err)
	}
}

// The real server's ways, as the specification has them.
func TestAuthorizeOfARealServer(t *testing.T) {
	t.Parallel()
	secured.Require(t)
	a := authorizer(t, secured.HTTPAddr, "")
	ask := []aclrules.Query{
		{Resource: aclrules.Service, Segment: "web", Access: aclrules.WriteAccess},
		{Resource: aclrules.ACL, Access: aclrules.WriteAccess},
		{Resource: aclrules.Key, Segment: "a/", Access: aclrules.WritePrefix},
		{Resource: aclrules.Intention, Segment: "*", Access: aclrules.ReadAccess},
	}
	for token, want := range map[string][]bool{testkit.ManagementToken: {true, true, true, true},
		"": {false, false, false, false}} {
		allowed, err := a.Authorize(context.Background(), token, ask)
		if err != nil || !slices.Equal(allowed, want) {
			t.Errorf("token %q: %v, %v", token, allowed, err)
		}
	}
	if _, err := a.Authorize(context.Background(), "11111111-0000-4000-8000-000000000009", ask); !UnknownToken(err) {
		t.Errorf("unknown token: %v", err)
	}
	if _, err := authorizer(t, secured.HTTPAddr, "dc9").Authorize(context.Background(), testkit.ManagementToken,
		ask); Status(err) != 500 || Reason(err) != "No path to datacenter" {
		t.Errorf("unknown datacenter: %v", err)
	}
	if _, err := authorizer(t, open.HTTPAddr, "").Authorize(context.Background(), "", ask); !ACLsDisabled(err) {
		t.Errorf("without ACLs: %v", err)
	}
}

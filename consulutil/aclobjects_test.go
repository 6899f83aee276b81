package consulutil

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// objects makes ACL objects whose names no other test has.
type objects struct {
	testing.TB
	acl  *api.ACL
	salt string
}

func newObjects(t testing.TB) *objects {
	t.Helper()
	return &objects{t, client(t, secured, testkit.ManagementToken).ACL(),
		strings.ToLower(strings.ReplaceAll(rand.Text(), "=", ""))}
}

func (o *objects) name(s string) string { return s + "-" + o.salt }

// policy makes one that grants read of a service of its name.
func (o *objects) policy(name string) *api.ACLPolicy {
	o.Helper()
	name = o.name(name)
	p, _, err := o.acl.PolicyCreate(
		&api.ACLPolicy{Name: name, Rules: fmt.Sprintf("service %q { policy = \"read\" }", name)}, nil)
	if err != nil {
		o.Fatal(err)
	}
	return p
}

func (o *objects) role(name string, policies ...*api.ACLPolicy) *api.ACLRole {
	o.Helper()
	role := &api.ACLRole{Name: o.name(name)}
	for _, p := range policies {
		role.Policies = append(role.Policies, &api.ACLLink{ID: p.ID})
	}
	role, _, err := o.acl.RoleCreate(role, nil)
	if err != nil {
		o.Fatal(err)
	}
	return role
}

func (o *objects) token(t *api.ACLToken) *api.ACLToken {
	o.Helper()
	t, _, err := o.acl.TokenCreate(t, nil)
	if err != nil {
		o.Fatal(err)
	}
	return t
}

// counter is a way to the secured server that counts requests.
type counter struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func newCounter(t testing.TB) *counter {
	t.Helper()
	target := &url.URL{Scheme: "http", Host: secured.Require(t).HTTPAddr}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	c := &counter{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.asked = append(c.asked, r.URL.Path)
		c.mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(c.Close)
	return c
}

// reader reads through the counter.
func (c *counter) reader(t testing.TB, token string) *ACLReader {
	t.Helper()
	client, err := NewClient(Options{Address: c.URL, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return NewACLReader(client, "")
}

// requests returns the requests for paths that begin so.
func (c *counter) requests(prefix string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, path := range c.asked {
		if strings.HasPrefix(path, prefix) {
			n++
		}
	}
	return n
}

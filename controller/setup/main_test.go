package setup

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// The servers of this package's tests: with ACLs, and without.
var secured, open *testkit.Consul

func TestMain(m *testing.M) {
	testkit.RunRole(map[string]func([]string) int{"setup": runSetup})
	secured, open = testkit.Servers()
	os.Exit(testkit.Main(m, secured.Stop, open.Stop))
}

// recorder counts and keeps the requests of a client, and may answer or refuse
// them itself.
type recorder struct {
	next http.RoundTripper
	// answer, if set, is asked first; nil, nil passes the request on.
	answer func(*http.Request) (*http.Response, error)

	mu    sync.Mutex
	lines []string
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.lines = append(r.lines, req.Method+" "+req.URL.RequestURI())
	r.mu.Unlock()
	if r.answer != nil {
		if resp, err := r.answer(req); resp != nil || err != nil {
			return resp, err
		}
	}
	return r.next.RoundTrip(req)
}

// wrap puts the recorder before a client's transport.
func (r *recorder) wrap(next http.RoundTripper) http.RoundTripper {
	r.next = next
	return r
}

// close gives the connections back: the server allows 200 of one address.
func (r *recorder) close() { (&http.Client{Transport: r.next}).CloseIdleConnections() }

// writes returns the requests that were no reads, since the last call.
func (r *recorder) writes() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []string
	for _, l := range r.lines {
		if !strings.HasPrefix(l, "GET ") {
			found = append(found, l)
		}
	}
	r.lines = nil
	return found
}

// client returns a client of the secured server, with a recorder.
func client(t testing.TB, token string, answer func(*http.Request) (*http.Response, error)) (*api.Client, *recorder) {
	t.Helper()
	secured.Require(t)
	r := &recorder{answer: answer}
	c, err := consulutil.NewClient(consulutil.Options{
		Address: secured.HTTPAddr, Token: token,
		Wrap: r.wrap,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	return c, r
}

func management(t testing.TB) *api.Client {
	t.Helper()
	c, _ := client(t, testkit.ManagementToken, nil)
	return c
}

// fixture is the wanted state of one test: names that no other test has, and not
// the anonymous token, which all share.
type fixture struct {
	name string
}

func newLab(t testing.TB) fixture {
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-", "#", "-").Replace(t.Name()))
	return fixture{fmt.Sprintf("%s-%d", name, labs.Add(1))}
}

// labs numbers them, for tests that run more than once on one server.
var labs atomic.Int64

func cluster(account int) string {
	return fmt.Sprintf("arn:aws:ecs:us-east-1:%012d:cluster/main", account)
}

func (l fixture) wanted(t testing.TB, o Options) State {
	t.Helper()
	s, err := l.state(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (l fixture) state(o Options) (State, error) {
	o.Cluster, o.RolePath = cmp.Or(o.Cluster, cluster(1)), cmp.Or(o.RolePath, DefaultRolePath)
	s, err := Agent(o)
	if err != nil {
		return s, err
	}
	s.Keys += l.name + "/"
	s.Policies[0].Name = l.policy()
	s.Roles[0].Name, s.Roles[0].Policies = l.role(), []string{l.policy()}
	for i, method := range []string{l.clientMethod(), l.serviceMethod()} {
		s.Methods[i].Name, s.Rules[i].Method = method, method
	}
	s.Rules[0].BindName = l.role()
	return s, nil
}

func (l fixture) policy() string        { return l.name + "-policy" }
func (l fixture) role() string          { return l.name + "-role" }
func (l fixture) clientMethod() string  { return l.name + "-client" }
func (l fixture) serviceMethod() string { return l.name + "-service" }

// setup returns a controller of the fixture.
func (l fixture) setup(t testing.TB, c *api.Client, o Options) *Setup {
	t.Helper()
	return &Setup{Client: c, Wanted: l.wanted(t, o), Log: hclog.NewNullLogger()}
}

// rulesOf returns the binding rules of a method that bind something.
func rulesOf(t testing.TB, acl *api.ACL, method string) []*api.ACLBindingRule {
	t.Helper()
	rules, _, err := acl.BindingRuleList(method, nil)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(rules,
		func(r *api.ACLBindingRule) bool { return strings.HasPrefix(r.Description, recordPrefix) })
}

func mustEnsure(t testing.TB, s *Setup) []Write {
	t.Helper()
	changes, err := s.Ensure(t.Context())
	if err != nil {
		t.Fatalf("Ensure: %v", err)
	}
	return changes
}

func text(c []Write) string {
	lines := make([]string, 0, len(c))
	for _, change := range c {
		lines = append(lines, describe(change))
	}
	return strings.Join(lines, "\n")
}

// describe returns a change as a line of text.
func describe(c Write) string {
	if c.Create {
		return c.Object.String() + " created"
	}
	return c.Object.String() + " corrected: " + strings.Join(c.Changed, ", ")
}

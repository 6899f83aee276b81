package setup

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// enterprise is what setup asks of an Enterprise server: it keeps what it is
// given, by path, partition and namespace, and writes down every request. Only
// the community server runs here.
type enterprise struct {
	mu      sync.Mutex
	log     bytes.Buffer
	objects map[string]json.RawMessage
}

func newEnterprise(t *testing.T) (*enterprise, *api.Client) {
	t.Helper()
	e := &enterprise{objects: map[string]json.RawMessage{}}
	e.objects["/v1/acl/token/"+anonymousToken+" default/default"] = json.RawMessage(`{"AccessorID":"` + anonymousToken +
		`","SecretID":"anonymous","Description":"Anonymous Token"}`)
	e.objects["/v1/namespace/default ecs/"] = json.RawMessage(`{"Name":"default","Meta":{"team":"a"},` +
		`"ACLs":{"PolicyDefaults":[{"ID":"1","Name":"theirs"}],"RoleDefaults":null}}`)
	c, err := consulutil.NewClient(consulutil.Options{
		Address: "enterprise.example:8500", Token: "t",
		Wrap: func(http.RoundTripper) http.RoundTripper { return e },
	})
	if err != nil {
		t.Fatal(err)
	}
	return e, c
}

func (e *enterprise) RoundTrip(r *http.Request) (*http.Response, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	fmt.Fprintf(&e.log, "%s %s\n", r.Method, r.URL.RequestURI())
	if len(body) > 0 {
		fmt.Fprintf(&e.log, "    %s\n", bytes.TrimSpace(body))
	}
	status, answer := e.answer(r, body)
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{}, Request: r,
		Body: io.NopCloser(bytes.NewReader(answer))}, nil
}

// answer answers as the server does.
func (e *enterprise) answer(r *http.Request, body []byte) (int, []byte) {
	q, path := r.URL.Query(), r.URL.Path
	place := " " + q.Get("partition") + "/" + q.Get("ns")
	switch {
	case path == "/v1/agent/self":
		return 200, []byte(`{"Config":{"Datacenter":"dc1","PrimaryDatacenter":"dc1"}}`)
	case strings.HasPrefix(path, "/v1/session/create"):
		return 200, []byte(`{"ID":"5e551011-0000-4000-8000-000000000000"}`)
	case strings.HasPrefix(path, "/v1/session/"):
		return 200, []byte("true")
	case strings.HasPrefix(path, "/v1/kv/"):
		return 200, []byte("true") // the lock
	case r.Method == http.MethodPut:
		return e.put(path, place, body)
	case path == "/v1/acl/binding-rules":
		return 200, e.list("/v1/acl/binding-rule/", place,
			func(o map[string]any) bool { return o["AuthMethod"] == q.Get("authmethod") })
	case path == "/v1/catalog/nodes":
		return 200, bytes.ReplaceAll(e.list("/v1/catalog/register", place, func(map[string]any) bool { return true }),
			[]byte(`"NodeMeta":`), []byte(`"Meta":`))
	case path == "/v1/namespaces":
		return 200, e.list("/v1/namespace/", place, func(map[string]any) bool { return true })
	}
	if o, ok := e.objects[strings.Replace(path, "/name/", "/", 1)+place]; ok {
		return 200, o
	}
	return 404, nil
}

// put keeps an object under its own path, with an ID and a name as the server
// gives them.
func (e *enterprise) put(path, place string, body []byte) (int, []byte) {
	var o map[string]any
	if err := json.Unmarshal(body, &o); err != nil {
		return 400, []byte(err.Error())
	}
	name, _ := o["Name"].(string)
	if path == "/v1/acl/binding-rule" {
		name = fmt.Sprint(o["AuthMethod"], " ", o["BindName"])
	}
	created := []string{"/v1/acl/policy", "/v1/acl/role", "/v1/acl/auth-method", "/v1/acl/binding-rule"}
	if strings.Count(path, "/") == 2 || slices.Contains(created, path) {
		path += "/" + name
		if strings.HasPrefix(path, "/v1/acl/") {
			o["ID"] = "id-of-" + name
		}
	}
	kept, _ := json.Marshal(o)
	e.objects[path+place] = kept
	return 200, kept
}

func (e *enterprise) list(prefix, place string, want func(map[string]any) bool) []byte {
	list := []map[string]any{}
	for key, data := range e.objects {
		if !strings.HasPrefix(key, prefix) || !strings.HasSuffix(key, place) {
			continue
		}
		var o map[string]any
		if json.Unmarshal(data, &o) == nil && want(o) {
			list = append(list, o)
		}
	}
	slices.SortFunc(list,
		func(a, b map[string]any) int { return cmp.Compare(fmt.Sprint(a["Name"]), fmt.Sprint(b["Name"])) })
	data, _ := json.Marshal(list)
	return data
}

// take returns the log since the last call.
func (e *enterprise) take() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.log.Reset()
	return e.log.String()
}

// TestEnterprise holds every request, with its query and body, against a golden
// file: the first setup of a partition, and the namespaces of its tasks.
func TestEnterprise(t *testing.T) {
	t.Parallel()
	e, c := newEnterprise(t)
	agent, err := Agent(Options{Cluster: cluster(1), RolePath: DefaultRolePath, Partition: "ecs", AnonymousRead: true})
	if err != nil {
		t.Fatal(err)
	}
	s := &Setup{Client: c, Wanted: agent, Log: hclog.NewNullLogger()}
	setsUpOnce(t, e, s, "enterprise.golden")
	other, client := newEnterprise(t)
	setsUpOnce(t, other,
		&Setup{Client: client, Wanted: agentless(t, Options{Partition: "ecs"}), Log: hclog.NewNullLogger()},
		"enterprise-agentless.golden")

	names := []string{"web", "default", "api", "web", ""}
	changes, err := s.EnsureNamespaces(t.Context(), names)
	if err != nil || len(changes) != 4 {
		t.Fatalf("%v:\n%s", err, text(changes))
	}
	testkit.Golden(t, "namespaces.golden", []byte(e.take()))
}

// setsUpOnce compares the first setup with a golden file; a second one writes nothing.
func setsUpOnce(t *testing.T, e *enterprise, s *Setup, golden string) {
	t.Helper()
	mustEnsure(t, s)
	testkit.Golden(t, golden, []byte(e.take()))
	mustEnsure(t, s)
	if log := e.take(); strings.Contains(log, "PUT ") {
		t.Errorf("%s: a second start writes:\n%s", golden, log)
	}
}

// TestNamespacesCostTwoReads: the old program read five times or more
// in every pass of a partition.
// refusing answers every write of a namespace with an error.
type refusing struct{ *enterprise }

func (f refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, "/v1/namespace") {
		return &http.Response{StatusCode: 500, Status: "500", Header: http.Header{}, Request: r,
			Body: io.NopCloser(strings.NewReader("no leader"))}, nil
	}
	return f.enterprise.RoundTrip(r)
}

func TestRefusedWritesOfNamespacesAreErrors(t *testing.T) {
	t.Parallel()
	e, _ := newEnterprise(t)
	c, err := consulutil.NewClient(consulutil.Options{
		Address: "enterprise.example:8500", Token: "t",
		Wrap: func(http.RoundTripper) http.RoundTripper { return refusing{e} },
	})
	if err != nil {
		t.Fatal(err)
	}
	state, err := Agent(Options{Cluster: cluster(1), RolePath: DefaultRolePath, Partition: "ecs", AnonymousRead: true})
	if err != nil {
		t.Fatal(err)
	}
	s := &Setup{Client: c, Wanted: state, Log: hclog.NewNullLogger()}
	writes, err := s.EnsureNamespaces(t.Context(), []string{"web"})
	for _, want := range []string{"correct namespace default: ", "create namespace web: ", "no leader"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	if len(writes) != 1 {
		t.Errorf("%d writes, want that of the policy", len(writes))
	}
}

func TestNamespacesCostTwoReads(t *testing.T) {
	t.Parallel()
	e, c := newEnterprise(t)
	state, err := Agent(Options{Cluster: cluster(1), RolePath: DefaultRolePath, Partition: "ecs", AnonymousRead: true})
	if err != nil {
		t.Fatal(err)
	}
	s := &Setup{Client: c, Wanted: state, Log: hclog.NewNullLogger()}
	if _, err := s.EnsureNamespaces(t.Context(), []string{"web"}); err != nil {
		t.Fatal(err)
	}
	e.take()
	if _, err := s.EnsureNamespaces(t.Context(), []string{"web"}); err != nil {
		t.Fatal(err)
	}
	want := "GET /v1/acl/policy/name/cross-namespace-read?consistent=&ns=default&partition=ecs\nGET " +
		"/v1/namespaces?consistent=&partition=ecs\n"
	if got := e.take(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	s.Wanted.Partition = ""
	if _, err := s.EnsureNamespaces(t.Context(), []string{"web"}); err != nil || e.take() != "" {
		t.Errorf("without partitions there are requests, or %v", err)
	}
}

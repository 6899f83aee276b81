package subcommand

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// admitWorld is a Consul with ACLs whose requests are counted.
type admitWorld struct {
	*testkit.Consul
	acl *api.ACL
}

// consulWithACLs starts a server for one test, and a client with its management token.
func consulWithACLs(t *testing.T) (*testkit.Consul, *api.Client) {
	t.Helper()
	c, err := testkit.StartConsul(testkit.ConsulOptions{ACL: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Require(t).Stop)
	admin, err := consulutil.NewClient(consulutil.Options{Address: c.HTTPAddr, Token: c.Token})
	if err != nil {
		t.Fatal(err)
	}
	return c, admin
}

// TestAdmitChecksPermissions asks a real Consul by the real command line.
func TestAdmitChecksPermissions(t *testing.T) {
	t.Parallel()
	c, admin := consulWithACLs(t)
	w := &admitWorld{c, admin.ACL()}
	for name, test := range map[string]func(*testing.T, *admitWorld){
		"worked example": permitsExample, "rights": permitsByRights, "engines": permitsByEngine,
		"no calls": permitsWithoutCalls, "default engine": permitsByDefault,
		"tokens": permitsTokens, "namespaces": permitsNamespaces, "batches": permitsInBatches,
		"disagree": permitsNoDisagreement, "transport": permitsOverBadNetworks,
		"escalation": permitsNoEscalation, "no endpoint": permitsWithoutEndpoint, "policy grants": permitsWithItsPolicy,
		"random": permitsAsTheServer, "disabled": permitsWithoutACLs, "no leak": permitsNoLeak,
		"unnamed": permitsUnnamed,
		"queries": permitsQueries,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, w)
		})
	}
}

// policy makes one and returns its name. Each text is unique: a server may remember what
// it made of equal ones.
func (w *admitWorld) policy(t *testing.T, rules string) string {
	t.Helper()
	name := strings.ToLower(rand.Text())
	if _, _, err := w.acl.PolicyCreate(&api.ACLPolicy{Name: name, Rules: "# " + name + "\n" + rules}, nil); err != nil {
		t.Fatal(err)
	}
	return name
}

// token makes one with a policy of each text, and returns the path of a file with it.
func (w *admitWorld) token(t *testing.T, texts ...string) string {
	t.Helper()
	token := &api.ACLToken{}
	for _, rules := range texts {
		token.Policies = append(token.Policies, &api.ACLLink{Name: w.policy(t, rules)})
	}
	return w.file(t, w.create(t, token))
}

func (w *admitWorld) create(t *testing.T, token *api.ACLToken) string {
	t.Helper()
	token, _, err := w.acl.TokenCreate(token, nil)
	if err != nil {
		t.Fatal(err)
	}
	return token.SecretID
}

func (w *admitWorld) file(t *testing.T, secret string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// way is a way to the server that counts requests.
type way struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

// way may answer itself, when answer reports that it did.
func (w *admitWorld) way(t *testing.T, answer func(http.ResponseWriter, *http.Request) bool) *way {
	t.Helper()
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: w.HTTPAddr})
	}}
	through := &way{}
	through.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		through.mu.Lock()
		through.asked = append(through.asked, r.URL.Path)
		through.mu.Unlock()
		if answer == nil || !answer(rw, r) {
			proxy.ServeHTTP(rw, r)
		}
	}))
	t.Cleanup(through.Close)
	return through
}

// requests returns how many there were.
func (w *way) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.asked)
}

const authorizePath = "/v1/internal/acl/authorize"

// webTask returns a task of the service web with these docker labels more.
func webTask(labels ...string) string {
	text := `"consul.hashicorp.com/service-name": "web"`
	for i := 0; i < len(labels); i += 2 {
		text += fmt.Sprintf(`, "consul.hashicorp.com/%s": %q`, labels[i], labels[i+1])
	}
	return plainTask(withEntryPoint + `, "dockerLabels": {` + text + `}`)
}

const webRules = `service "web" { policy = "write" }
service "web-sidecar-proxy" { policy = "write" }
`

// admitCase is a call of admit and what it should come to.
type admitCase struct {
	task  string
	words []string
	code  int
	// findings are the codes of standard error, and texts what it has to have.
	findings []string
	texts    []string
}

func (c admitCase) run(t *testing.T, w *admitWorld) {
	t.Helper()
	code, stdout, stderr := callAdmit(c.task, append([]string{"-config", admitMesh(t), "-consul-addr", w.HTTPAddr},
		append(c.words, "-")...)...)
	var codes []string
	for line := range strings.Lines(withoutChoices(stderr)) {
		if words := strings.Fields(line); len(words) > 1 && (strings.HasPrefix(words[1], "A")) {
			codes = append(codes, words[1])
		}
	}
	if code != c.code || !slices.Equal(codes, c.findings) || (stdout == "") != (c.code != 0) {
		t.Errorf("%q: exit %d, want %d, findings %q, want %q, output of %d bytes\n%s", c.words, code, c.code, codes,
			c.findings, len(stdout), stderr)
	}
	for _, text := range c.texts {
		if !strings.Contains(stderr, text) {
			t.Errorf("%q: stderr has no %q:\n%s", c.words, text, stderr)
		}
	}
}

func permitsExample(t *testing.T, w *admitWorld) {
	token := w.token(t, `service "web" { policy = "write" }`)
	admitCase{webTask("upstreams", "api:1234"), []string{"-token-file", token}, 2, []string{"ACL-DENIED", "ACL-DENIED"},
		[]string{
			"does not allow service:web-sidecar-proxy write, needed to register the proxy of the Connect service web: ",
			`(add service "web-sidecar-proxy" { policy = "write" }; a deny that was not read outranks it)`,
			`(add service "api" { policy = "read" }; a deny that was not read outranks it)`,
		}}.run(t, w)
	_, stdout, _ := callAdmit(webTask("upstreams", "api:1234"), "-config", admitMesh(t), "-consul-addr", w.HTTPAddr,
		"-token-file", token, "-output", "report", "-")
	var report admitReport
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatal(err)
	}
	if want := "service \"web-sidecar-proxy\" { policy = \"write\" }\nservice \"api\" { policy = \"read\" }"; report.Permissions.Policy != want || report.Permissions.Decision != "deny" {
		t.Errorf("decision %s, policy\n%s\nwant\n%s", report.Permissions.Decision, report.Permissions.Policy, want)
	}
	if u := report.Usages[""]; u == nil || fmt.Sprint(*u) != "{[web] [connect-proxy:web] [api] false []}" {
		t.Errorf("usages %+v", u)
	}
	var asked []string
	for _, a := range report.Permissions.Answers {
		asked = append(asked, a.Query().String()+" "+a.Decision)
	}
	if want := []string{"service:web write allow", "service:web-sidecar-proxy write deny",
		"service:api read deny"}; !slices.Equal(asked, want) {
		t.Errorf("answers %q, want %q", asked, want)
	}
}

func permitsByRights(t *testing.T, w *admitWorld) {
	management := `acl = "write" operator = "write" service_prefix "" { policy = "write" intentions = "write" }`
	for _, c := range []struct {
		labels, rules []string
		code          int
		findings      int
		text          string
	}{
		{nil, []string{webRules}, 0, 0, ""},
		{nil, []string{`service_prefix "web" { policy = "read" }`}, 2, 2,
			"does not allow service:web write, needed to register the service web: service_prefix \"web\" = read, "},
		{nil, []string{management}, 0, 0, ""},
		{nil, []string{management, `service "web" { policy = "deny" }`}, 2, 1,
			"remove service \"web\" = deny of token "},
		{[]string{"kv-prefixes", "app/"}, []string{webRules}, 2, 1,
			`does not allow key:app/ read, needed to read keys below the prefix app/: `},
		{[]string{"kv-prefixes", "app/"}, []string{webRules, `key_prefix "app/" { policy = "read" }`}, 0, 0, ""},
		{[]string{"kv-prefixes", "app/:list"}, []string{webRules, `key_prefix "app/" { policy = "read" }`}, 2, 1,
			`add key_prefix "app/" { policy = "list" }`},
		{[]string{"gateway-kind", "mesh-gateway"}, []string{webRules}, 2, 1,
			`does not allow mesh write, needed to get the certificate of peerings for the mesh gateway web: `},
		{[]string{"gateway-kind", "mesh-gateway"}, []string{webRules, `operator = "write"`}, 0, 0, ""},
		{[]string{"native", "true"}, []string{`service "web" { policy = "write" }`}, 0, 0, ""},
	} {
		words := []string{"-token-file", w.token(t, c.rules...), "-resolver-token-file", w.file(t, w.Token)}
		admitCase{webTask(c.labels...), words, c.code, slices.Repeat([]string{"ACL-DENIED"}, c.findings),
			[]string{c.text}}.run(t, w)
	}
}

// permitsQueries checks that a prepared query takes no right of its name, and the one to read what it answers with.
func permitsQueries(t *testing.T, w *admitWorld) {
	admin, err := consulutil.NewClient(consulutil.Options{Address: w.HTTPAddr, Token: w.Token})
	if err != nil {
		t.Fatal(err)
	}
	instance := &api.CatalogRegistration{Node: "far", Address: "10.0.0.9",
		Service: &api.AgentService{Service: "behind"}}
	if _, err := admin.Catalog().Register(instance, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := admin.PreparedQuery().Create(&api.PreparedQueryDefinition{Name: "nearest",
		Service: api.ServiceQuery{Service: "behind"}}, nil); err != nil {
		t.Fatal(err)
	}
	for rules, want := range map[string]int{
		`service "behind" { policy = "read" } node_prefix "" { policy = "read" }`: 1,
		`query "nearest" { policy = "read" } node_prefix "" { policy = "read" }`:  0,
	} {
		c, err := consulutil.NewClient(consulutil.Options{Address: w.HTTPAddr, TokenFile: w.token(t, rules)})
		if err != nil {
			t.Fatal(err)
		}
		answer, _, err := c.PreparedQuery().Execute("nearest", nil)
		if err != nil || len(answer.Nodes) != want {
			t.Errorf("%s: answer %+v, %v, want %d instances", rules, answer, err, want)
		}
	}
}

func permitsByEngine(t *testing.T, w *admitWorld) {
	good, bad, reader := w.token(t, webRules), w.token(t, `node "web" { policy = "write" }`), w.file(t, w.Token)
	for _, c := range []struct {
		words    []string
		code     int
		findings []string
	}{
		{[]string{"-check", "server", "-token-file", good}, 0, nil},
		{[]string{"-check", "server", "-token-file", bad}, 2, []string{"ACL-DENIED", "ACL-DENIED"}},
		{[]string{"-check", "both", "-token-file", good}, 0, nil},
		{[]string{"-check", "resolver", "-token-file", good, "-resolver-token-file", reader}, 0, nil},
		{[]string{"-check", "resolver", "-token-file", bad, "-resolver-token-file", reader}, 2,
			[]string{"ACL-DENIED", "ACL-DENIED"}},
		{[]string{"-check", "resolver", "-token-file", good}, 3, []string{"ACL-UNKNOWN", "ACL-UNKNOWN"}},
		// it may not read its policies
		{[]string{"-check", "resolver", "-token-file", reader}, 0, nil},
		{[]string{"-check", "none", "-token-file", bad}, 0, nil},
		{[]string{"-check", "maybe", "-token-file", bad}, 1, nil},
	} {
		admitCase{webTask(), c.words, c.code, c.findings, nil}.run(t, w)
	}
}

// permitsWithoutCalls checks that no call is made for a task that uses nothing of Consul, or has no token.
func permitsWithoutCalls(t *testing.T, w *admitWorld) {
	token := w.token(t, webRules)
	for _, c := range []struct {
		task  string
		words []string
		code  int
		text  string
		calls bool
	}{
		{webTask("mesh-inject", "false"), []string{"-token-file", token}, 0, "", false},
		{webTask(), []string{"-token-file", token, "-check", "none"}, 0, "", false},
		{webTask(), []string{"-allow-unauthenticated"}, 0, "warning ACL-UNCHECKED $: there is no token", false},
		{webTask(), nil, 1, "there is no token whose rights could be checked", false},
		{webTask(), []string{"-anonymous"}, 2, "info ACL-ANONYMOUS $: these are the rights of requests without a token",
			true},
		{webTask(), []string{"-token-file", token}, 0, "", true},
	} {
		through := w.way(t, nil)
		words := append([]string{"-config", admitMesh(t), "-consul-addr", through.URL}, append(c.words, "-")...)
		code, _, stderr := callAdmit(c.task, words...)
		if asked := through.requests(); code != c.code || !strings.Contains(stderr, c.text) ||
			(len(asked) > 0) != c.calls {
			t.Errorf("%q: exit %d, want %d, %d calls, stderr %q, want %q", c.words, code, c.code, len(asked), stderr,
				c.text)
		}
	}
}

// permitsByDefault checks that no Consul is asked without token and address.
func permitsByDefault(t *testing.T, w *admitWorld) {
	if code, _, stderr := callAdmit(webTask(), "-config", admitMesh(t), "-"); code != 0 ||
		withoutChoices(stderr) != "" {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
	mesh := filepath.Join(t.TempDir(), "mesh.json")
	text := fmt.Sprintf(`{"consulServers": {"hosts": "10.0.0.4"}, "proxy": {"mode": "direct"}, 
		"admission": {"operatorToken": %q, "images": {"consulECS": "example/consul-ecs:1"}}}`, w.create(t, &api.ACLToken{}))
	if err := os.WriteFile(mesh, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := callAdmit(webTask(), "-config", mesh, "-consul-addr", w.HTTPAddr, "-"); code != 2 ||
		!strings.Contains(stderr, "ACL-DENIED") {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
	admitCase{webTask(), []string{"-config", mesh, "-token-file", w.token(t, webRules)}, 0, nil, nil}.run(t, w)
}

func permitsTokens(t *testing.T, w *admitWorld) {
	deleted := w.create(t, &api.ACLToken{AccessorID: "0b0b0b19-0000-4000-8000-000000000019"})
	if _, err := w.acl.TokenDelete("0b0b0b19-0000-4000-8000-000000000019", nil); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{deleted, "not-a-token-of-this-server"} {
		for _, engine := range []string{"server", "resolver", "both"} {
			admitCase{webTask(), []string{"-check", engine, "-token-file", w.file(t, secret)}, 2, []string{"ACL-TOKEN"},
				[]string{"unknown to the server (wrong, deleted or expired)"}}.run(t, w)
		}
	}
	admitCase{webTask(), []string{"-token-file", "/nonexistent"}, 1, nil,
		[]string{"the operator's token: read token file: "}}.run(t, w)
	good := w.token(t, webRules)
	admitCase{webTask(), []string{"-token-file", good, "-resolver-token-file", "/nonexistent"}, 1, nil,
		[]string{"-resolver-token-file: read token file: "}}.run(t, w)
	admitCase{webTask(), []string{"-token-file", good, "-consul-addr", "::bad::"}, 1, nil,
		[]string{`consul address "::bad::"`}}.run(t, w)
	for _, engine := range []string{"resolver", "both"} {
		admitCase{webTask(), []string{"-check", engine, "-token-file", good, "-resolver-token-file",
			w.file(t, deleted)}, 3, []string{"ACL-UNKNOWN"}, []string{
			"of a flag, is unknown to the server", "name another token"}}.run(t, w)
	}
	// Tokens need not be UUIDs.
	admitCase{webTask(), []string{"-token-file",
		w.file(t, w.create(t, &api.ACLToken{SecretID: "b0000000-0000-4000-8000-00000000000d",
			ServiceIdentities: []*api.ACLServiceIdentity{{ServiceName: "web"}}}))}, 0, nil, nil}.run(t, w)
}

func permitsNamespaces(t *testing.T, w *admitWorld) {
	token := w.token(t, webRules, `service "api" { policy = "read" }`)
	for _, engine := range []string{"server", "both"} {
		admitCase{webTask("namespace", "team1"), []string{"-check", engine, "-token-file", token}, 2,
			[]string{"ADM-NAMESPACE"}, []string{"the namespace or partition team1 needs Consul Enterprise"}}.run(t, w)
		admitCase{webTask("namespace", "default"), []string{"-check", engine, "-token-file", token}, 0, nil, nil}.run(t,
			w)
	}
	admitCase{webTask("namespace", "team1"), []string{"-check", "resolver", "-token-file", token}, 3,
		[]string{"ACL-UNKNOWN"}, []string{"team1", "-check server or -check both"}}.run(t, w)
	admitCase{webTask("partition", "p1"), []string{"-token-file", token}, 2, []string{"ADM-NAMESPACE"},
		[]string{"the namespace or partition p1/default needs"}}.run(t, w)
	// Every namespace is asked about.
	mesh := filepath.Join(t.TempDir(), "mesh.json")
	text := `{"consulServers": {"hosts": "10.0.0.4"}, "proxy": {"mode": "direct", "upstreams": [{"destinationName": "api", "destinationNamespace": "team2", "localBindPort": 1234}]},
		"admission": {"images": {"consulECS": "example/consul-ecs:1"}}}`
	if err := os.WriteFile(mesh, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	admitCase{webTask(), []string{"-config", mesh, "-token-file", w.token(t, `service "web" { policy = "write" }`)}, 2,
		[]string{"ADM-NAMESPACE", "ACL-DENIED"}, []string{"team2"}}.run(t, w)
}

// permitsInBatches checks that a request has 64 questions at most, as many as the server takes.
func permitsInBatches(t *testing.T, w *admitWorld) {
	var upstreams []string
	for i := range 100 {
		upstreams = append(upstreams, fmt.Sprintf("api-%d:%d", i, 30000+i))
	}
	through := w.way(t, nil)
	code, _, stderr := callAdmit(webTask("upstreams", strings.Join(upstreams, ",")), "-config", admitMesh(t),
		"-consul-addr", through.URL, "-check", "server", "-token-file", w.token(t, webRules), "-")
	if asked := through.requests(); code != 2 || strings.Count(stderr, "ACL-DENIED") != 100 ||
		!slices.Equal(asked, []string{authorizePath, authorizePath}) {
		t.Errorf("exit %d, %d denials, requests %q", code, strings.Count(stderr, "ACL-DENIED"), asked)
	}
}

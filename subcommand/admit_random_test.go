package subcommand

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// permitsAsTheServer compares some random pairs of a task and a token.
func permitsAsTheServer(t *testing.T, w *admitWorld) { comparePairs(t, w, 150) }

// Every verdict on what a task uses is the real server's, for random tokens.
func TestAdmitPermitsAsTheServer(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	c, admin := consulWithACLs(t)
	comparePairs(t, &admitWorld{c, admin.ACL()}, 5000)
}

// pairing makes random tasks and tokens. In names and rules % stands for a salt of the
// pair: a server may remember what it made of equal rules before.
type pairing struct {
	*rand.Rand
	salt string
}

func (p pairing) pick(from ...string) string { return from[p.IntN(len(from))] }

func (p pairing) salted(text string) string { return strings.ReplaceAll(text, "%", p.salt) }

// usages returns a random task, and what it needs as questions about a token.
func (p pairing) usages() (task string, needs []string) {
	labels := []string{"service-name", "%web"}
	need := func(texts ...string) { needs = append(needs, texts...) }
	switch p.IntN(5) {
	case 0:
		labels = append(labels, "gateway-kind", "mesh-gateway")
		need("service:%web write", "mesh write")
	case 1:
		labels = append(labels, "gateway-kind", "api-gateway")
		need("service:%web write", "mesh read")
	default:
		need("service:%web write", "service:%web-sidecar-proxy write")
		var upstreams []string
		for i, name := range []string{"%api", "%web-db", "%other"} {
			if p.IntN(2) == 0 {
				upstreams = append(upstreams, fmt.Sprintf("%s:%d", name, 3000+i))
				need("service:" + name + " read")
			}
		}
		if len(upstreams) > 0 {
			labels = append(labels, "upstreams", strings.Join(upstreams, ","))
		}
	}
	switch p.IntN(4) {
	case 0:
		labels = append(labels, "kv-prefixes", "%app/,%app/web:list")
		need("key:%app/ read", "key:%app/web list")
	case 1:
		labels = append(labels, "kv-prefixes", "%cfg")
		need("key:%cfg read")
	}
	for i := range labels {
		labels[i] = p.salted(labels[i])
	}
	for i := range needs {
		needs[i] = p.salted(needs[i])
	}
	return webTask(labels...), needs
}

func (p pairing) rules() string {
	lines := []string{"# %"}
	for range p.IntN(6) {
		kind, level := p.pick("service", "service", "service", "key", "node"), p.pick("deny", "read", "write", "write",
			"write", "Write", "DENY")
		name := p.pick("%web", "%web-sidecar-proxy", "%", "%we", "%api", "%web-", "%o")
		if kind == "key" {
			name, level = p.pick("%app/", "%app/w", "%app/web", "%cfg", "%"), p.pick(level, "list")
		}
		lines = append(lines, fmt.Sprintf("%s%s %q { policy = %q }", kind, p.pick("", "_prefix", "_prefix"), name,
			level))
	}
	if p.IntN(4) == 0 {
		lines = append(lines, fmt.Sprintf("%s = %q", p.pick("mesh", "operator", "acl"),
			p.pick("read", "write", "deny")))
	}
	if p.IntN(5) == 0 {
		lines = append(lines, `service_prefix "" { policy = "write" }`, `key_prefix "" { policy = "write" }`)
	}
	return p.salted(strings.Join(lines, "\n"))
}

// token makes a random one on the server.
func (p pairing) token(t *testing.T, w *admitWorld) string {
	t.Helper()
	token := &api.ACLToken{}
	link := func() []*api.ACLLink { return []*api.ACLLink{{Name: w.policy(t, p.rules())}} }
	token.Policies = link()
	if p.IntN(2) == 0 {
		token.ServiceIdentities = []*api.ACLServiceIdentity{{ServiceName: p.salted(p.pick("%web", "%api"))}}
	}
	if p.IntN(3) == 0 {
		role := &api.ACLRole{Name: p.salt + "-role", Policies: link()}
		if p.IntN(2) == 0 {
			role.TemplatedPolicies = []*api.ACLTemplatedPolicy{{TemplateName: aclrules.APIGatewayTemplate,
				TemplateVariables: &api.ACLTemplatedPolicyVariables{Name: p.salted("%web")}}}
		}
		if _, _, err := w.acl.RoleCreate(role, nil); err != nil {
			t.Fatal(err)
		}
		token.Roles = []*api.ACLLink{{Name: role.Name}}
	}
	return w.create(t, token)
}

// comparePairs compares with the server's own verdict, each by another engine.
func comparePairs(t *testing.T, w *admitWorld, count int) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	p := pairing{Rand: rand.New(rand.NewPCG(seed, 0))}
	server, err := consulutil.NewAuthorizer(consulutil.Options{Address: w.HTTPAddr}, "")
	if err != nil {
		t.Fatal(err)
	}
	reader, mesh, token := w.file(t, w.Token), admitMesh(t), ""
	codes := map[int]int{}
	for n := range count {
		p.salt = fmt.Sprintf("s%d%x", n, p.Uint32())
		task, needs := p.usages()
		secret := p.token(t, w)
		token = w.file(t, secret)
		var queries []aclrules.Query
		for _, need := range needs {
			what, access, _ := strings.Cut(need, " ")
			q, err := aclrules.ParseQuery(what, access)
			if err != nil {
				t.Fatal(err)
			}
			queries = append(queries, q)
		}
		allowed, err := server.Authorize(t.Context(), secret, queries)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		wantCode := 0
		for i, need := range needs {
			verdict := " allow"
			if !allowed[i] {
				verdict, wantCode = " deny", 2
			}
			want = append(want, need+verdict)
		}
		engine := p.pick("resolver", "both")
		code, stdout, stderr := callAdmit(task, "-config", mesh, "-consul-addr", w.HTTPAddr, "-check", engine,
			"-token-file", token, "-resolver-token-file", reader, "-output", "report", "-")
		var report admitReport
		if err := json.Unmarshal([]byte(stdout), &report); err != nil {
			t.Fatalf("seed %d: %v: %s", seed, err, stderr)
		}
		var got []string
		for _, a := range report.Permissions.Answers {
			got = append(got, a.Query().String()+" "+a.Decision)
		}
		slices.Sort(got)
		slices.Sort(want)
		if code != wantCode || !slices.Equal(got, want) {
			t.Fatalf("seed %d, pair %d, engine %s: exit %d, want %d, answers\n%q\nwant\n%q\n%s", seed, n, engine, code,
				wantCode, got, want, stdout)
		}
		codes[code]++
	}
	t.Logf("seed %d: exit codes %v", seed, codes)
	if codes[0] < count/50 || codes[2] < count/50 {
		t.Errorf("exit codes %v: the pairs show too little", codes)
	}
}

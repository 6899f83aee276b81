package consulutil

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

const questionsPerToken = 60

// decisions returns how many are compared: 20,000, or as many as the environment
// says for a long run.
func decisions(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("ACL_DECISIONS"))
	if err != nil {
		return 20_000
	}
	return n
}

// Every answer of ours is the real server's, for random tokens.
func TestAgainstTheServer(t *testing.T) {
	t.Parallel()
	l := newACLServer(t)
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("ACL_SEED"), 10, 64); err == nil {
		seed = s
	}
	d := dice{mathrand.New(mathrand.NewPCG(seed, 0))}
	counts := map[aclrules.Verdict]int{}
	for n := 0; n < decisions(t); n = counts[aclrules.Allowed] + counts[aclrules.Denied] + counts[aclrules.Unknown] {
		s := d.tokenCase(questionsPerToken)
		verdicts, wrong := l.compare(s)
		if wrong != "" {
			t.Log(wrong)
			s, wrong = l.shrink(s, wrong)
			s.Questions = nil // the one that matters is in wrong
			b, _ := json.Marshal(s)
			t.Fatalf("seed %d, after %d decisions: %s\n%s", seed, n, wrong, b)
		}
		for _, v := range verdicts {
			counts[v]++
		}
	}
	t.Logf("seed %d: %d allowed, %d denied, 0 mismatches", seed, counts[aclrules.Allowed], counts[aclrules.Denied])
	if counts[aclrules.Unknown] > 0 || counts[aclrules.Allowed] < counts[aclrules.Denied]/10 {
		t.Errorf("verdicts %v: the tokenCases show too little", counts)
	}
}

// aclServer is a server to make token cases on.
type aclServer struct {
	t          *testing.T
	acl        *api.ACL
	read       *api.Client
	authorizer *Authorizer
	key        *ecdsa.PrivateKey
	public     string
	tokenCases int
	// strict servers refuse policies that set an argument again.
	strict bool
}

func newACLServer(t *testing.T) *aclServer {
	t.Helper()
	c := client(t, secured, testkit.ManagementToken)
	authorizer, err := NewAuthorizer(Options{Address: secured.HTTPAddr}, "")
	if err != nil {
		t.Fatal(err)
	}
	l := aclServerOf(t, c)
	l.authorizer, l.strict = authorizer, secured.Since(t, 1, 22)
	return l
}

// aclServerOf returns an aclServer that makes and signs, and asks nothing.
func aclServerOf(t *testing.T, c *api.Client) *aclServer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	return &aclServer{t: t, acl: c.ACL(), read: c, key: key, public: string(public)}
}

func (l *aclServer) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// compare makes the token case and returns our verdicts, and the first that is not
// the server's.
func (l *aclServer) compare(s tokenCase) (verdicts []aclrules.Verdict, wrong string) {
	l.t.Helper()
	l.tokenCases++
	salt := fmt.Sprintf("s%d%x", l.tokenCases, mathrand.Uint32())
	secret, subject := l.build(s, salt)
	r := aclrules.Resolver{Objects: NewACLReader(l.read, ""), Datacenter: "dc1", Now: time.Now()}
	found := r.Resolve(context.Background(), subject)
	if (found.Refused != nil) != (secret == "") {
		return nil, fmt.Sprintf("refused by us: %v, by the server: %v", found.Refused, secret == "")
	}
	if secret == "" {
		return nil, ""
	}
	if len(found.Errors) > 0 {
		return nil, fmt.Sprintf("errors: %v", found.Errors)
	}
	var questions []aclrules.Query
	for _, q := range s.Questions {
		q.Segment = salted(q.Segment, salt)
		questions = append(questions, q)
	}
	allowed, err := l.authorizer.Authorize(context.Background(), secret, questions)
	l.must(err)
	table := aclrules.Merge(found.Rules, aclrules.Options{Default: aclrules.Denied})
	for i, q := range questions {
		d := table.Decide(q)
		verdicts = append(verdicts, d.Verdict)
		if (d.Verdict == aclrules.Allowed) != allowed[i] {
			return verdicts, fmt.Sprintf("%s: %s, the server allows it: %v\n%+v",
				q, d.Verdict, allowed[i], table.Explain(q))
		}
	}
	return verdicts, ""
}

// shrink looks for a smaller tokenCase that goes wrong, too.
func (l *aclServer) shrink(s tokenCase, wrong string) (tokenCase, string) {
	for again := true; again; {
		again = false
		for _, c := range s.smaller() {
			if _, w := l.compare(c); w != "" {
				s, wrong, again = c, w, true
				break
			}
		}
	}
	return s, wrong
}

// build makes the token case on the server. The secret is empty when the server
// refuses the login.
func (l *aclServer) build(s tokenCase, salt string) (secret string, subject aclrules.Subject) {
	l.t.Helper()
	var ids []string
	for i, p := range s.Policies {
		if l.strict {
			p.Lines = withoutRepeated(l.t, p.Lines)
		}
		made, _, err := l.acl.PolicyCreate(
			&api.ACLPolicy{Name: fmt.Sprintf("%spolicy-%d", salt, i), Rules: p.render(salt),
				Datacenters: p.Datacenters}, nil)
		l.must(err)
		ids = append(ids, made.ID)
	}
	links := func(indexes []int) (all []*api.ACLLink) {
		for _, i := range indexes {
			all = append(all, &api.ACLLink{ID: ids[i]})
		}
		return all
	}
	var roles []*api.ACLLink
	for i, r := range s.Roles {
		made, _, err := l.acl.RoleCreate(&api.ACLRole{
			Name: fmt.Sprintf("%srole-%d", salt, i), Policies: links(r.Policies),
			ServiceIdentities: services(r.Identity, salt), NodeIdentities: nodes(r.Identity, salt),
			TemplatedPolicies: templates(r.Identity, salt),
		}, nil)
		l.must(err)
		roles = append(roles, &api.ACLLink{ID: made.ID})
	}
	if s.Login {
		return l.login(s, salt)
	}
	made, _, err := l.acl.TokenCreate(&api.ACLToken{
		Description: salt, Policies: links(s.Direct), Roles: roles,
		ServiceIdentities: services(s.Identity, salt), NodeIdentities: nodes(s.Identity, salt),
		TemplatedPolicies: templates(s.Identity, salt),
	}, nil)
	l.must(err)
	return made.SecretID, aclrules.Subject{Token: made.AccessorID}
}

// lintValid lints a text that is a policy.
func lintValid(t *testing.T, text string) []aclrules.Finding {
	t.Helper()
	if _, err := aclrules.Parse(text); err != nil {
		t.Fatal(err)
	}
	return aclrules.LintText("", text)
}

// withoutRepeated leaves out lines that set an argument again.
func withoutRepeated(t *testing.T, lines []string) []string {
	t.Helper()
	found := lintValid(t, strings.Join(lines, "\n"))
	var distinct []string
	for i, line := range lines {
		if !slices.ContainsFunc(found,
			func(f aclrules.Finding) bool { return f.Code == aclrules.Repeated && f.Line == i+1 }) {
			distinct = append(distinct, line)
		}
	}
	return distinct
}

// What lint calls repeated is what servers from 1.22 on refuse, and no more.
func TestRepeatedArgumentsAsTheServer(t *testing.T) {
	t.Parallel()
	l := newACLServer(t)
	for i, text := range []string{
		"mesh = \"read\"\nmesh = \"write\"",
		"mesh = \"read\"\n\"mesh\" = \"write\"",
		`key "a" { policy = "read" policy = "deny" }`,
		`key "a" { policy = "read" } key "a" { policy = "deny" }`,
		`key = { a = { policy = "read" } } key = { b = { policy = "deny" } }`,
		`{"mesh": "read", "mesh": "write"}`,
		`{"key": {"a": {"policy": "read"}, "a": {"policy": "deny"}}}`,
	} {
		found := lintValid(t, text)
		repeated := slices.ContainsFunc(found, func(f aclrules.Finding) bool { return f.Code == aclrules.Repeated })
		_, _, err := l.acl.PolicyCreate(&api.ACLPolicy{Name: fmt.Sprintf("repeated-%d", i), Rules: text}, nil)
		if (err != nil) != (repeated && l.strict) {
			t.Errorf("%s: repeated to us: %v, to the server: %v", text, repeated, err)
		}
	}
}

func (l *aclServer) login(s tokenCase, salt string) (string, aclrules.Subject) {
	l.t.Helper()
	method := &api.ACLAuthMethod{Name: salt, Type: "jwt", Config: map[string]any{
		"JWTValidationPubKeys": []string{l.public}, "BoundAudiences": []string{"test"},
		"ClaimMappings":     map[string]string{"team": "team", "env": "env"},
		"ListClaimMappings": map[string]string{"groups": "groups"},
	}}
	_, _, err := l.acl.AuthMethodCreate(method, nil)
	l.must(err)
	for _, b := range s.Rules {
		rule := &api.ACLBindingRule{AuthMethod: salt, Selector: b.Selector, BindType: api.BindingRuleBindType(b.Type),
			BindName: salted(b.Name, salt)}
		if b.Variable != "" {
			rule.BindVars = &api.ACLTemplatedPolicyVariables{Name: salted(b.Variable, salt)}
		}
		_, _, err := l.acl.BindingRuleCreate(rule, nil)
		l.must(err)
	}
	values := map[string]string{}
	claims := map[string][]string{"groups": append([]string{"any"}, s.Groups...)}
	for k, v := range s.Claims {
		values[k] = salted(v, salt)
		claims[k] = []string{values[k]}
	}
	subject := aclrules.Subject{Login: &aclrules.Login{Method: salt, Entity: aclrules.Entity{Claims: claims}}}
	token, _, err := l.acl.Login(&api.ACLLoginParams{AuthMethod: salt, BearerToken: l.sign(values, claims["groups"])},
		nil)
	if Status(err) == 403 || strings.Contains(Reason(err), "bind name") ||
		strings.Contains(Reason(err), "failed validation") {
		return "", subject
	}
	l.must(err)
	return token.SecretID, subject
}

// sign makes a JWT.
func (l *aclServer) sign(values map[string]string, groups []string) string {
	l.t.Helper()
	claims := map[string]any{"aud": "test", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
		"groups": groups}
	for k, v := range values {
		claims[k] = v
	}
	body, err := json.Marshal(claims)
	l.must(err)
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"ES256","typ":"JWT"}`)) + "." + encode(body)
	hash := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, l.key, hash[:])
	l.must(err)
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signed + "." + encode(signature)
}

func services(i identities, salt string) (all []*api.ACLServiceIdentity) {
	for _, s := range i.Services {
		all = append(all, &api.ACLServiceIdentity{ServiceName: salted(s.Name, salt), Datacenters: s.Datacenters})
	}
	return all
}

func nodes(i identities, salt string) (all []*api.ACLNodeIdentity) {
	for _, n := range i.Nodes {
		all = append(all, &api.ACLNodeIdentity{NodeName: salted(n[0], salt), Datacenter: n[1]})
	}
	return all
}

func templates(i identities, salt string) (all []*api.ACLTemplatedPolicy) {
	for _, t := range i.Templates {
		p := &api.ACLTemplatedPolicy{TemplateName: t.Template, Datacenters: t.Datacenters}
		if t.Name != "" {
			p.TemplateVariables = &api.ACLTemplatedPolicyVariables{Name: salted(t.Name, salt)}
		}
		all = append(all, p)
	}
	return all
}

package setup

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// operators makes every setting that an operator may make.
func operators(t *testing.T, l fixture) {
	t.Helper()
	acl := management(t).ACL()
	method, _, err := acl.AuthMethodRead(l.serviceMethod(), nil)
	if err != nil {
		t.Fatal(err)
	}
	method.Description, method.DisplayName, method.TokenLocality, method.MaxTokenTTL = "mine",
		"Mine", "global", time.Hour
	method.Config = map[string]any{
		"BoundIAMPrincipalARNs": []string{"arn:aws:iam::000000000009:role/z",
			trusted(1, "consul-ecs/"), "arn:aws:iam::000000000009:role/a"},
		"IAMEntityTags":       []string{"team", config.TagServiceName, "env", config.TagNamespace},
		"ServerIDHeaderValue": "consul.example", "MaxRetries": 3, "EnableIAMEntityDetails": true,
		"IAMEndpoint": "https://iam.example", "STSEndpoint": "https://sts.example",
		"AllowedSTSHeaderValues": []string{"X-Extra"},
	}
	if _, _, err := acl.AuthMethodUpdate(method, nil); err != nil {
		t.Fatal(err)
	}
	extra, _, err := acl.PolicyCreate(
		&api.ACLPolicy{Name: l.name + "-extra", Rules: `key_prefix "x" { policy = "read" }`}, nil)
	if err != nil {
		t.Fatal(err)
	}
	role, _, err := acl.RoleReadByName(l.role(), nil)
	if err != nil {
		t.Fatal(err)
	}
	role.Description, role.Policies = "mine", append([]*api.ACLLink{{ID: extra.ID}}, role.Policies...)
	if _, _, err := acl.RoleUpdate(role, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := acl.BindingRuleCreate(
		&api.ACLBindingRule{AuthMethod: l.serviceMethod(), BindType: "role",
			BindName: "their-role", Description: "mine"}, nil); err != nil {
		t.Fatal(err)
	}
}

// objects returns what operators may have changed, without indices.
func objects(t *testing.T, l fixture) (*api.ACLAuthMethod, *api.ACLRole, []*api.ACLBindingRule) {
	t.Helper()
	acl := management(t).ACL()
	method, _, err := acl.AuthMethodRead(l.serviceMethod(), nil)
	if err != nil {
		t.Fatal(err)
	}
	role, _, err := acl.RoleReadByName(l.role(), nil)
	if err != nil {
		t.Fatal(err)
	}
	rules := rulesOf(t, acl, l.serviceMethod())
	method.ModifyIndex, role.ModifyIndex, role.Hash = 0, 0, nil
	return method, role, rules
}

// TestOperatorSettingsSurvive: first a start with nothing to do, then
// one that must write the same method for another account.
func TestOperatorSettingsSurvive(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	c, requests := client(t, testkit.ManagementToken, nil)
	s := l.setup(t, c, Options{})
	mustEnsure(t, s)
	operators(t, l)
	requests.writes()
	mustEnsure(t, s)
	if w := requests.writes(); len(w) > 0 {
		t.Errorf("writes over an operator's settings: %q", w)
	}
	method, role, rules := objects(t, l)
	mustEnsure(t, l.setup(t, c, Options{Cluster: cluster(2)}))
	method.Config["BoundIAMPrincipalARNs"] = append(method.Config["BoundIAMPrincipalARNs"].([]any),
		trusted(2, "consul-ecs/"))
	gotMethod, gotRole, gotRules := objects(t, l)
	for _, diff := range []string{cmp.Diff(method, gotMethod), cmp.Diff(role, gotRole), cmp.Diff(rules, gotRules)} {
		if diff != "" {
			t.Errorf("an operator's setting changed (-want +got):\n%s", diff)
		}
	}
}

// TestTrustOfTheWholeAccountIsAWarning: what 0.6 left behind stays, and the
// log reports it, once for each method.
func TestTrustOfTheWholeAccountIsAWarning(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	mustEnsure(t, l.setup(t, management(t), Options{Cluster: cluster(2)}))
	addPrincipal(t, l.serviceMethod(), trusted(1, ""))
	s := l.setup(t, management(t), Options{})
	var log bytes.Buffer
	s.Log = hclog.New(&hclog.LoggerOptions{Output: &log, DisableTime: true})
	for range 3 {
		mustEnsure(t, s)
	}
	want := "[WARN]  " + noticeWhole + ": auth_method=" + l.serviceMethod() +
		` principal_arn="arn:aws:iam::000000000001:role/*"`
	// Not all warnings: another test may grant something to anonymous, whose token is the server's.
	if got := log.String(); strings.Count(got, noticeWhole) != 1 || !strings.Contains(got, want) {
		t.Errorf("log\n%swant once\n%s", got, want)
	}
	if got := principalsOf(t, l.serviceMethod()); len(got) != 3 {
		t.Errorf("trusts %q", got)
	}
}

// TestEnsureMends deletes and breaks what is ours, one object after the other.
func TestEnsureMends(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.setup(t, management(t), Options{})
	mustEnsure(t, s)
	acl := management(t).ACL()
	for _, c := range []struct {
		what  string
		spoil func() error
		want  string
	}{
		{"policy deleted", func() error {
			p, _, err := acl.PolicyReadByName(l.policy(), nil)
			if err == nil {
				_, err = acl.PolicyDelete(p.ID, nil)
			}
			return err
		}, "policy " + l.policy() + " created\nrole " + l.role() + " corrected: Policies"},
		{"policy weakened", func() error {
			p, _, err := acl.PolicyReadByName(l.policy(), nil)
			if err == nil {
				p.Rules = `acl = "write"`
				_, _, err = acl.PolicyUpdate(p, nil)
			}
			return err
		}, "policy " + l.policy() + " corrected: Rules"},
		{"role deleted", func() error {
			r, _, err := acl.RoleReadByName(l.role(), nil)
			if err == nil {
				_, err = acl.RoleDelete(r.ID, nil)
			}
			return err
		}, "role " + l.role() + " created"},
		{"method deleted", func() error { _, err := acl.AuthMethodDelete(l.clientMethod(), nil); return err },
			"auth method " + l.clientMethod() + " created\nbinding rule " + l.clientMethod() +
				": Bind a policy for Consul clients on ECS created\n" +
				"record " + cluster(1) + " in " + l.clientMethod() + " created"},
		{"rule broken", func() error {
			rule := rulesOf(t, acl, l.clientMethod())[0]
			rule.BindName = "other"
			_, _, err := acl.BindingRuleUpdate(rule, nil)
			return err
		}, "binding rule " + l.clientMethod() + ": Bind a policy for Consul clients on ECS corrected: BindName"},
	} {
		if err := c.spoil(); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if diff := cmp.Diff(c.want, text(mustEnsure(t, s))); diff != "" {
			t.Errorf("%s: changes (-want +got):\n%s", c.what, diff)
		}
		if again := mustEnsure(t, s); len(again) > 0 {
			t.Errorf("%s: once more:\n%s", c.what, text(again))
		}
	}
}

// answerWith answers requests whose path begins with prefix.
func answerWith(prefix string, status int, body string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		if !strings.HasPrefix(r.URL.Path, prefix) {
			return nil, nil
		}
		return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{}, Request: r,
			Body: io.NopCloser(bytes.NewBufferString(body))}, nil
	}
}

// TestAnonymousToken tests the server's anonymous token.
func TestAnonymousToken(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for name, c := range map[string]struct{ self, error string }{
		"secondary":                  {self: `{"Config":{"Datacenter":"dc2","PrimaryDatacenter":"dc1"}}`},
		"secondary of older servers": {self: `{"Config":{"Datacenter":"dc2"},"DebugConfig":{"PrimaryDatacenter":"dc1"}}`},
		"no primary": {self: `{"Config":{"Datacenter":"dc2"}}`,
			error: "has no Datacenter or no PrimaryDatacenter"},
		"no datacenter": {self: `{"DebugConfig":{"PrimaryDatacenter":"dc1"}}`,
			error: "has no Datacenter or no PrimaryDatacenter"},
	} {
		client, requests := client(t, testkit.ManagementToken, answerWith("/v1/agent/self", 200, c.self))
		s := l.setup(t, client, Options{})
		s.Wanted.Anonymous = anonymousOf(t)
		_, err := s.Ensure(t.Context())
		testkit.ErrorContains(t, err, c.error)
		for _, w := range requests.writes() {
			if strings.Contains(w, "/v1/acl/token/") {
				t.Errorf("%s: %s", name, w)
			}
		}
	}

	c, requests := client(t, testkit.ManagementToken, nil)
	s := l.setup(t, c, Options{})
	s.Wanted.Anonymous = anonymousOf(t)
	want := "policy anonymous-token-policy created\ntoken 00000000-0000-0000-0000-000000000002 corrected: Policies"
	if diff := cmp.Diff(want, text(mustEnsure(t, s))); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	policy, _, err := management(t).ACL().PolicyReadByName("anonymous-token-policy", nil)
	if err != nil || policy.Description != "Anonymous token Policy" {
		t.Fatalf("policy %+v, %v", policy, err)
	}
	defer management(t).ACL().PolicyDelete(policy.ID, nil)
	requests.writes()
	if mustEnsure(t, s); len(requests.writes()) > 0 {
		t.Error("a second start writes")
	}
	anonymous, err := consulutil.NewClient(consulutil.Options{Address: secured.HTTPAddr, Token: "anonymous"})
	if err != nil {
		t.Fatal(err)
	}
	if nodes, _, err := anonymous.Catalog().Nodes(nil); err != nil || len(nodes) == 0 {
		t.Errorf("without a token: %v, %v", nodes, err)
	}
}

func anonymousOf(t *testing.T) *Policy {
	t.Helper()
	s, err := Agent(Options{Cluster: cluster(1), RolePath: DefaultRolePath, AnonymousRead: true})
	if err != nil {
		t.Fatal(err)
	}
	return s.Anonymous
}

// TestOneFailureHidesNoOther: an object that fails keeps back those
// that need it, and nothing else; each reason is reported.
func TestOneFailureHidesNoOther(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	refuse := func(r *http.Request) (*http.Response, error) {
		creates := r.URL.Path == "/v1/acl/policy" || r.URL.Path == "/v1/acl/auth-method"
		if r.Method == http.MethodPut && creates {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if strings.Contains(string(body), l.policy()) || strings.Contains(string(body), l.clientMethod()) {
				return answerWith("/", 500, "disk full")(r)
			}
		}
		return nil, nil
	}
	c, _ := client(t, testkit.ManagementToken, refuse)
	changes, err := l.setup(t, c, Options{}).Ensure(t.Context())
	want := "auth method " + l.serviceMethod() + " created\n" +
		"binding rule " + l.serviceMethod() + ": Bind a service identity from IAM role tag for ECS created\n" +
		"record " + cluster(1) + " in " + l.serviceMethod() + " created"
	if diff := cmp.Diff(want, text(changes)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	for _, part := range []string{"create policy " + l.policy(), "create auth method " + l.clientMethod()} {
		testkit.ErrorContains(t, err, part)
	}
	testkit.Equal(t, "failures in the error", strings.Count(fmt.Sprint(err), "disk full"), 2)
	testkit.Equal(t, "class of the error", consulutil.Classify(err), retry.NotYet)
	mustEnsure(t, l.setup(t, management(t), Options{}))
}

// TestNotFoundIsTheStatus: the old program took the text of one 403
// for "does not exist".
func TestNotFoundIsTheStatus(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
	}{
		"refused":       {403, "Permission denied: token with AccessorID 'x' lacks permission 'acl:read'"},
		"the old words": {403, "ACL not found"},
		"broken":        {500, "ACL not found"},
	} {
		l := newLab(t)
		client, requests := client(t, testkit.ManagementToken, answerWith("/v1/acl/", c.status, c.body))
		if _, err := l.setup(t, client, Options{}).Ensure(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
		for _, w := range requests.writes() {
			if strings.Contains(w, "/v1/acl/") {
				t.Errorf("%s: taken for missing: %s", name, w)
			}
		}
	}
}

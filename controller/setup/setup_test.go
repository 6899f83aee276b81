package setup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestEnsureMakesEverythingOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	c, requests := client(t, testkit.ManagementToken, nil)
	s := l.setup(t, c, Options{})
	want := "policy " + l.policy() + " created\n" +
		"role " + l.role() + " created\n" +
		"auth method " + l.clientMethod() + " created\n" +
		"auth method " + l.serviceMethod() + " created\n" +
		"binding rule " + l.clientMethod() + ": Bind a policy for Consul clients on ECS created\n" +
		"binding rule " + l.serviceMethod() + ": Bind a service identity from IAM role tag for ECS created\n" +
		"record " + cluster(1) + " in " + l.clientMethod() + " created\n" +
		"record " + cluster(1) + " in " + l.serviceMethod() + " created"
	if diff := cmp.Diff(want, text(mustEnsure(t, s))); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if n := len(requests.writes()); n != 8+4 { // session, lock, release, destroy
		t.Errorf("%d writes, want 12", n)
	}
	if again := mustEnsure(t, s); len(again) > 0 {
		t.Errorf("a second start changes:\n%s", text(again))
	}
	if writes := requests.writes(); len(writes) > 0 {
		t.Errorf("a second start writes: %q", writes)
	}
	checkObjects(t, l)
}

// checkObjects holds the objects against the contract's words.
func checkObjects(t *testing.T, l fixture) {
	t.Helper()
	acl := management(t).ACL()
	policy, _, err := acl.PolicyReadByName(l.policy(), nil)
	if err != nil {
		t.Fatal(err)
	}
	role, _, err := acl.RoleReadByName(l.role(), nil)
	if err != nil {
		t.Fatal(err)
	}
	method, _, err := acl.AuthMethodRead(l.serviceMethod(), nil)
	if err != nil {
		t.Fatal(err)
	}
	rules := rulesOf(t, acl, l.serviceMethod())
	if len(rules) != 1 {
		t.Fatal(rules)
	}
	type view struct {
		PolicyText, Rules, RoleText, Linked, MethodText, Type string
		Config                                                map[string]any
		Rule                                                  api.ACLBindingRule
	}
	rules[0].ID, rules[0].CreateIndex, rules[0].ModifyIndex = "", 0, 0
	got := view{policy.Description, policy.Rules, role.Description, role.Policies[0].Name, method.Description,
		method.Type, method.Config, *rules[0]}
	want := view{
		PolicyText: "Consul Client Token Policy for ECS",
		Rules:      "node_prefix \"\" {\n  policy = \"write\"\n}\nservice_prefix \"\" {\n  policy = \"read\"\n}",
		RoleText:   "Consul Client Token Role for ECS",
		Linked:     l.policy(),
		MethodText: "AWS IAM auth method for ECS service tokens",
		Type:       "aws-iam",
		Config: map[string]any{
			"BoundIAMPrincipalARNs":  []any{"arn:aws:iam::000000000001:role/consul-ecs/*"},
			"EnableIAMEntityDetails": true,
			"IAMEntityTags":          []any{"consul.hashicorp.com.namespace", "consul.hashicorp.com.service-name"},
		},
		Rule: api.ACLBindingRule{
			Description: "Bind a service identity from IAM role tag for ECS", AuthMethod: l.serviceMethod(),
			BindType: "service", BindName: "${entity_tags.consul.hashicorp.com.service-name}",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

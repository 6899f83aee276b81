package setup

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// ownServer returns the setup of a cluster without agents on its own server, since its
// objects have fixed names, with the server's log of requests and our log.
func ownServer(t *testing.T, o testkit.ConsulOptions) (*Setup, *recorder, *bytes.Buffer) {
	t.Helper()
	server, err := testkit.StartConsul(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Require(t).Stop)
	requests, log := &recorder{}, &bytes.Buffer{}
	s := &Setup{Wanted: agentless(t, Options{AnonymousRead: true}),
		Log: hclog.New(&hclog.LoggerOptions{Output: log, DisableTime: true})}
	s.Client, err = consulutil.NewClient(
		consulutil.Options{Address: server.HTTPAddr, Token: server.Token, Wrap: requests.wrap})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(requests.close)
	return s, requests, log
}

func agentless(t testing.TB, o Options) State {
	t.Helper()
	o.Cluster, o.RolePath, o.Address = cluster(1), DefaultRolePath, "10.0.0.9"
	s, err := Agentless(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestAgentlessObjects: the first start creates all objects, the second writes nothing,
// and what is deleted is created again.
func TestAgentlessObjects(t *testing.T) {
	t.Parallel()
	s, requests, log := ownServer(t, testkit.ConsulOptions{ACL: true})
	const rule = "binding rule iam-ecs-service-token: Bind a "
	want := []string{
		"policy consul-ecs-api-gateway-policy created",
		"policy consul-ecs-mesh-gateway-policy created",
		"role consul-ecs-api-gateway-role created",
		"role consul-ecs-mesh-gateway-role created",
		"role consul-ecs-terminating-gateway-role created",
		"auth method iam-ecs-service-token created",
		rule + "service identity from IAM role tag for ECS created",
		rule + "Consul role from IAM role tag for ECS based API gateways created",
		rule + "Consul role from IAM role tag for ECS based Terminating gateways created",
		rule + "Consul role from IAM role tag for ECS based mesh gateways created",
		"record " + cluster(1) + "/agentless in iam-ecs-service-token created",
		"policy anonymous-token-policy created",
		"token 00000000-0000-0000-0000-000000000002 corrected: Policies",
		"node " + cluster(1) + " created",
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), text(mustEnsure(t, s))); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	checkAgentlessObjects(t, s.Client)
	requests.writes()
	if again := mustEnsure(t, s); len(again) > 0 || len(requests.writes()) > 0 {
		t.Errorf("a second start changes:\n%s", text(again))
	}
	if n := strings.Count(log.String(), "[INFO]  Successfully configured the anonymous token\n"); n != 1 {
		t.Errorf("%d lines about the anonymous token in\n%s", n, log)
	}
	mendsAgentless(t, s)
}

// checkAgentlessObjects compares the server's objects with the contract's.
func checkAgentlessObjects(t *testing.T, c *api.Client) {
	t.Helper()
	method, _, err := c.ACL().AuthMethodRead("iam-ecs-service-token", nil)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{method.Type, method.Description}
	config := map[string]any{
		"BoundIAMPrincipalARNs":  []any{"arn:aws:iam::000000000001:role/consul-ecs/*"},
		"EnableIAMEntityDetails": true,
		"IAMEntityTags": []any{"consul.hashicorp.com.gateway-kind",
			"consul.hashicorp.com.namespace", "consul.hashicorp.com.service-name"},
	}
	if diff := cmp.Diff(config, method.Config); diff != "" {
		t.Errorf("auth method (-want +got):\n%s", diff)
	}
	methods, _, err := c.ACL().AuthMethodList(nil)
	if err != nil || len(methods) != 1 {
		t.Errorf("%d auth methods, %v", len(methods), err)
	}
	for _, r := range rulesOf(t, c.ACL(), "") {
		got = append(got, strings.Join([]string{r.AuthMethod, string(r.BindType), r.BindName, r.Selector}, " "))
	}
	roles, _, err := c.ACL().RoleList(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range roles {
		for _, p := range r.Policies {
			r.Description += " " + p.Name
		}
		got = append(got, r.Name+" "+r.Description)
	}
	slices.Sort(got)
	const selector = ` entity_tags["consul.hashicorp.com.gateway-kind"] == `
	want := []string{
		"AWS IAM auth method for ECS service tokens",
		"aws-iam",
		"consul-ecs-api-gateway-role API Gateway Role for ECS consul-ecs-api-gateway-policy",
		"consul-ecs-mesh-gateway-role Mesh Gateway Role for ECS consul-ecs-mesh-gateway-policy",
		"consul-ecs-terminating-gateway-role Terminating Gateway Role for ECS",
		"iam-ecs-service-token role consul-ecs-api-gateway-role" + selector + `"api-gateway"`,
		"iam-ecs-service-token role consul-ecs-mesh-gateway-role" + selector + `"mesh-gateway"`,
		"iam-ecs-service-token role consul-ecs-terminating-gateway-role" + selector + `"terminating-gateway"`,
		"iam-ecs-service-token service ${entity_tags.consul.hashicorp.com.service-name} ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	node, _, err := c.Catalog().Node(cluster(1), nil)
	if err != nil || node == nil {
		t.Fatalf("node %+v, %v", node, err)
	}
	testkit.Equal(t, "meta of the node", node.Node.Meta, map[string]string{"synthetic-node": "true"})
	testkit.Equal(t, "address of the node", node.Node.Address, "10.0.0.9")
	testkit.Equal(t, "services of the node", len(node.Services), 0)
}

// mendsAgentless deletes one object after the other.
func mendsAgentless(t *testing.T, s *Setup) {
	t.Helper()
	acl := s.Client.ACL()
	policy := func(name string) func() error {
		return func() error {
			p, _, err := acl.PolicyReadByName(name, nil)
			if err == nil {
				_, err = acl.PolicyDelete(p.ID, nil)
			}
			return err
		}
	}
	const rules = "binding rule iam-ecs-service-token: Bind a service identity from IAM role tag for ECS created\n" +
		"binding rule iam-ecs-service-token: Bind a Consul role from IAM role tag for ECS based API gateways created\n" +
		"binding rule iam-ecs-service-token: Bind a Consul role from IAM role tag for ECS based Terminating gateways " +
		"created\n" +
		"binding rule iam-ecs-service-token: Bind a Consul role from IAM role tag for ECS based mesh gateways created"
	const record = "record arn:aws:ecs:us-east-1:000000000001:cluster/main/agentless in iam-ecs-service-token created"
	for _, c := range []struct {
		what  string
		spoil func() error
		want  string
	}{
		{"mesh policy", policy("consul-ecs-mesh-gateway-policy"),
			"policy consul-ecs-mesh-gateway-policy created\nrole consul-ecs-mesh-gateway-role corrected: Policies"},
		{"API policy", policy("consul-ecs-api-gateway-policy"),
			"policy consul-ecs-api-gateway-policy created\nrole consul-ecs-api-gateway-role corrected: Policies"},
		{"anonymous policy", policy("anonymous-token-policy"),
			"policy anonymous-token-policy created\ntoken 00000000-0000-0000-0000-000000000002 corrected: Policies"},
		{"role", func() error {
			r, _, err := acl.RoleReadByName("consul-ecs-terminating-gateway-role", nil)
			if err == nil {
				_, err = acl.RoleDelete(r.ID, nil)
			}
			return err
		}, "role consul-ecs-terminating-gateway-role created"},
		{"auth method", func() error { _, err := acl.AuthMethodDelete("iam-ecs-service-token", nil); return err },
			"auth method iam-ecs-service-token created\n" + rules + "\n" + record},
		{"rules", func() error {
			all, _, err := acl.BindingRuleList("", nil)
			for _, r := range all {
				if err == nil {
					_, err = acl.BindingRuleDelete(r.ID, nil)
				}
			}
			return err
		}, record + "\n" + rules},
		{"node", func() error {
			_, err := s.Client.Catalog().Deregister(&api.CatalogDeregistration{Node: cluster(1)}, nil)
			return err
		}, "node " + cluster(1) + " created"},
		{"node's address", func() error {
			_, err := s.Client.Catalog().Register(&api.CatalogRegistration{Node: cluster(1), Address: "10.0.0.8"}, nil)
			return err
		}, "node " + cluster(1) + " corrected: Address, Meta"},
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

// TestAgentlessWithoutACLs: the cluster's node is registered all the same, and the log
// explains the rest once.
func TestAgentlessWithoutACLs(t *testing.T) {
	t.Parallel()
	s, requests, log := ownServer(t, testkit.ConsulOptions{})
	if diff := cmp.Diff("node "+cluster(1)+" created", text(mustEnsure(t, s))); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	requests.writes()
	if again := mustEnsure(t, s); len(again) > 0 || len(requests.writes()) > 0 {
		t.Errorf("a second start changes:\n%s", text(again))
	}
	const want = "[WARN]  ACLs are disabled in Consul: no auth method is created, and only services of dead tasks " +
		"are removed\n"
	if got := log.String(); strings.Count(got, want) != 1 || strings.Contains(got, "anonymous") {
		t.Errorf("log\n%s", got)
	}
}

// TestTwoAgentlessControllersShareTheMethod: each adds its account, and an operator's
// settings stay.
func TestTwoAgentlessControllersShareTheMethod(t *testing.T) {
	t.Parallel()
	s, _, _ := ownServer(t, testkit.ConsulOptions{ACL: true})
	mustEnsure(t, s)
	method, _, err := s.Client.ACL().AuthMethodRead("iam-ecs-service-token", nil)
	if err != nil {
		t.Fatal(err)
	}
	method.Config["STSEndpoint"], method.Config["IAMEntityTags"] = "https://sts.example", []string{"team"}
	if _, _, err := s.Client.ACL().AuthMethodUpdate(method, nil); err != nil {
		t.Fatal(err)
	}
	second, err := Agentless(Options{Cluster: cluster(2), RolePath: "/other/"})
	if err != nil {
		t.Fatal(err)
	}
	changes := mustEnsure(t, &Setup{Client: s.Client, Wanted: second, Log: hclog.NewNullLogger()})
	if len(changes) != 3 { // record, method, node
		t.Errorf("changes:\n%s", text(changes))
	}
	if again := mustEnsure(t, s); len(again) > 0 {
		t.Errorf("the first then changes:\n%s", text(again))
	}
	got, _, err := s.Client.ACL().AuthMethodRead("iam-ecs-service-token", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"BoundIAMPrincipalARNs": []any{"arn:aws:iam::000000000001:role/consul-ecs/*",
			"arn:aws:iam::000000000002:role/other/*"},
		"EnableIAMEntityDetails": true, "STSEndpoint": "https://sts.example",
		"IAMEntityTags": []any{"team", "consul.hashicorp.com.gateway-kind",
			"consul.hashicorp.com.namespace", "consul.hashicorp.com.service-name"},
	}
	if diff := cmp.Diff(want, got.Config); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

// TestAgentlessNeedsTheRuleForNodes: with the documented policy setup is complete, and
// without its rule for nodes the error names that, or a warning if the node exists.
func TestAgentlessNeedsTheRuleForNodes(t *testing.T) {
	t.Parallel()
	const nodes = `node_prefix "" { policy = "write" }`
	l := newLab(t)
	rules := strings.Replace(documented(t), nodes, "", 1)
	refused, _ := client(t, testkit.Grant(t, management(t), rules), nil)
	_, err := (&Setup{Client: refused, Wanted: l.agentless(t), Log: hclog.NewNullLogger()}).Ensure(t.Context())
	wantPermanent(t, err, "create node "+l.name+": ")
	testkit.ErrorContains(t, err, "a policy with: "+nodes)
	allowed, _ := client(t, testkit.Grant(t, management(t), documented(t)), nil)
	changes := mustEnsure(t, &Setup{Client: allowed, Wanted: l.agentless(t), Log: hclog.NewNullLogger()})
	if diff := cmp.Diff("node "+l.name+" created", text(changes)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	var log bytes.Buffer
	again := mustEnsure(t,
		&Setup{Client: refused, Wanted: l.agentless(t), Log: hclog.New(&hclog.LoggerOptions{Output: &log})})
	testkit.Equal(t, "changes", text(again), "")
	if strings.Contains(log.String(), "created in consul") {
		t.Errorf("the log has a node that was not created:\n%s", &log)
	}
	if !strings.Contains(log.String(), "node_prefix") {
		t.Errorf("no node_prefix in the log:\n%s", &log)
	}
}

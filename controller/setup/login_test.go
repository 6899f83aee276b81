package setup

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/controller/wanted"
)

// TestTasksLogIn: the methods that setup makes are such that a task's role can
// log in by them, and gets what it should. Their endpoints are an operator's
// setting, which the narrowed path leaves alone.
func TestTasksLogIn(t *testing.T) {
	l := newLab(t)
	fake := awstest.New(t, awstest.Role{
		Account: "000000000001", Path: "/consul-ecs/", Name: "web-role",
		Tags: map[string]string{wanted.TagServiceName: "web"},
	})
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_CONFIG_FILE", none)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", fake.CredentialsURI())

	s := l.setup(t, management(t), wanted.Options{RolePath: "/", WholeAccount: true})
	mustEnsure(t, s)
	for _, name := range []string{l.clientMethod(), l.serviceMethod()} {
		setEndpoints(t, name, fake.URL)
	}
	if token := login(t, l.clientMethod(), ""); len(token.Roles) != 1 || token.Roles[0].Name != l.role() {
		t.Errorf("a client's token %+v, want role %s", token, l.role())
	}
	if token := login(t, l.serviceMethod(), ""); len(token.ServiceIdentities) != 1 || token.ServiceIdentities[0].ServiceName != "web" {
		t.Errorf("a service's token %+v, want the identity web", token)
	}
	mustEnsure(t, l.setup(t, management(t), wanted.Options{RolePath: "consul-ecs"}))
	login(t, l.serviceMethod(), "")
	mustEnsure(t, l.setup(t, management(t), wanted.Options{RolePath: "elsewhere"}))
	login(t, l.serviceMethod(), "is not trusted")
	login(t, l.clientMethod(), "is not trusted")
}

func setEndpoints(t *testing.T, method, url string) {
	t.Helper()
	acl := management(t).ACL()
	m, _, err := acl.AuthMethodRead(method, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Config["STSEndpoint"], m.Config["IAMEndpoint"] = url, url
	if _, _, err := acl.AuthMethodUpdate(m, nil); err != nil {
		t.Fatal(err)
	}
}

// login logs the task's role in and returns its token, or wants a refusal.
func login(t *testing.T, method, refusal string) *api.ACLToken {
	t.Helper()
	signer, err := awsutil.NewSigner(t.Context(), awsutil.LoadOptions{DefaultRegion: "us-west-2", UserAgent: "consul-ecs", Version: "v0"})
	if err != nil {
		t.Fatal(err)
	}
	bearer, err := signer.Bearer(t.Context(), awsutil.BearerOptions{IncludeEntity: true})
	if err != nil {
		t.Fatal(err)
	}
	c, _ := client(t, "anonymous", nil)
	token, err := consulutil.Login(t.Context(), c, consulutil.LoginParams{Method: method, Bearer: bearer})
	if refusal != "" {
		if err == nil || !strings.Contains(err.Error(), refusal) {
			t.Errorf("%s: got %v, want %q", method, err, refusal)
		}
		return nil
	}
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	mine, _ := client(t, token.Secret, nil)
	read, _, err := mine.ACL().TokenReadSelf(nil)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// laterGeneration is another generation's state, as data only: roles with and
// without a policy, and rules distinguished by selectors.
func laterGeneration(l lab) wanted.State {
	s := wanted.State{
		Cluster: cluster(1), Keys: wanted.Keys + l.name + "/",
		Policies: []wanted.Policy{{Name: l.policy(), Description: "API Gateway token Policy", Rules: `mesh = "read"` + "\n" + `node_prefix "" { policy = "read" }`}},
		Roles: []wanted.Role{
			{Name: l.name + "-api", Description: "API Gateway Role for ECS", Policies: []string{l.policy()}},
			{Name: l.name + "-terminating", Description: "Terminating Gateway Role for ECS"},
		},
		Methods: []wanted.AuthMethod{{
			Name: l.serviceMethod(), Description: "AWS IAM auth method for ECS service tokens",
			Principals: []string{trusted(1, "consul-ecs/")},
			EntityTags: []string{"consul.hashicorp.com.gateway-kind", wanted.TagNamespace, wanted.TagServiceName},
		}},
	}
	for kind, role := range map[string]string{"api-gateway": "-api", "terminating-gateway": "-terminating"} {
		s.Rules = append(s.Rules, wanted.BindingRule{
			Method: l.serviceMethod(), Description: "Bind a Consul role from IAM role tag for ECS based " + kind,
			Selector: `entity_tags["consul.hashicorp.com.gateway-kind"] == "` + kind + `"`, BindType: api.BindingRuleBindTypeRole, BindName: l.name + role,
		})
	}
	return s
}

// TestGenerationIsData: another generation needs no other code, and shares the
// service method with ours.
func TestGenerationIsData(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	mustEnsure(t, l.setup(t, management(t), wanted.Options{Cluster: cluster(2)}))
	s := &Setup{Client: management(t), Wanted: laterGeneration(l), Log: hclog.NewNullLogger()}
	s.Wanted.Policies[0].Name += "-later"
	s.Wanted.Roles[0].Policies = []string{s.Wanted.Policies[0].Name}
	if changes := mustEnsure(t, s); len(changes) != 7 {
		t.Errorf("changes:\n%s", text(changes))
	}
	if again := mustEnsure(t, s); len(again) > 0 {
		t.Errorf("a second start changes:\n%s", text(again))
	}
	if again := mustEnsure(t, l.setup(t, management(t), wanted.Options{Cluster: cluster(2)})); len(again) > 0 {
		t.Errorf("ours changes what the later one made:\n%s", text(again))
	}
	rules, _, err := management(t).ACL().BindingRuleList(l.serviceMethod(), nil)
	if err != nil || len(rules) != 3 {
		t.Fatalf("%d rules, %v", len(rules), err)
	}
	own := slices.IndexFunc(rules, func(r *api.ACLBindingRule) bool { return r.BindName == l.name+"-api" })
	rules[own].Selector = "" // every task would be an API gateway
	if _, _, err := management(t).ACL().BindingRuleUpdate(rules[own], nil); err != nil {
		t.Fatal(err)
	}
	if changes := mustEnsure(t, s); len(changes) != 1 || changes[0].Fields[0] != "Selector" {
		t.Errorf("changes:\n%s", text(changes))
	}
}

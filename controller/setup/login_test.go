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
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
)

// TestTasksLogIn: the methods that setup makes are such that a task's role can
// log in by them, and gets what it should. Their endpoints are an operator's
// setting, which the narrowed path leaves alone.
func TestTasksLogIn(t *testing.T) {
	l := newLab(t)
	fake := awstest.New(t, awstest.Role{
		Account: "000000000001", Path: "/consul-ecs/", Name: "web-role",
		Tags: map[string]string{config.TagServiceName: "web"},
	})
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_CONFIG_FILE", none)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", fake.CredentialsURI())

	s := l.setup(t, management(t), Options{RolePath: "/", WholeAccount: true})
	mustEnsure(t, s)
	for _, name := range []string{l.clientMethod(), l.serviceMethod()} {
		setEndpoints(t, name, fake.URL)
	}
	if token := login(t, l.clientMethod(), ""); len(token.Roles) != 1 || token.Roles[0].Name != l.role() {
		t.Errorf("a client's token %+v, want role %s", token, l.role())
	}
	if token := login(t, l.serviceMethod(), ""); len(token.ServiceIdentities) != 1 ||
		token.ServiceIdentities[0].ServiceName != "web" {
		t.Errorf("a service's token %+v, want the identity web", token)
	}
	mustEnsure(t, l.setup(t, management(t), Options{RolePath: "consul-ecs"}))
	login(t, l.serviceMethod(), "")
	mustEnsure(t, l.setup(t, management(t), Options{RolePath: "elsewhere"}))
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
	signer, err := awsutil.NewSigner(t.Context(),
		awsutil.LoadOptions{DefaultRegion: "us-west-2", UserAgent: "consul-ecs", Version: "v0"})
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

// agentless returns the state of the fixture's cluster without agents.
func (l fixture) agentless(t *testing.T) State {
	t.Helper()
	s := agentless(t, Options{})
	s.Keys += l.name + "/"
	for i := range s.Policies {
		s.Policies[i].Name = l.name + s.Policies[i].Name
	}
	for i, r := range s.Roles {
		s.Roles[i].Name = l.name + r.Name
		for j := range r.Policies {
			r.Policies[j] = l.name + r.Policies[j]
		}
	}
	s.Methods[0].Name = l.serviceMethod()
	for i, r := range s.Rules {
		s.Rules[i].Method = l.serviceMethod()
		if r.BindType == api.BindingRuleBindTypeRole {
			s.Rules[i].BindName = l.name + r.BindName
		}
	}
	s.Node.Name = l.name
	return s
}

// TestGenerationsShareTheServiceMethod: two controllers of one cluster, while its tasks
// change the generation.
func TestGenerationsShareTheServiceMethod(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	mustEnsure(t, l.setup(t, management(t), Options{}))
	s := &Setup{Client: management(t), Wanted: l.agentless(t), Log: hclog.NewNullLogger()}
	if changes := mustEnsure(t, s); len(changes) != 11 {
		t.Errorf("changes:\n%s", text(changes))
	}
	if again := mustEnsure(t, s); len(again) > 0 {
		t.Errorf("a second start changes:\n%s", text(again))
	}
	if again := mustEnsure(t, l.setup(t, management(t), Options{})); len(again) > 0 {
		t.Errorf("acl-controller changes what the other made:\n%s", text(again))
	}
	rules := rulesOf(t, management(t).ACL(), l.serviceMethod())
	if len(rules) != 4 {
		t.Fatalf("%d rules", len(rules))
	}
	own := slices.IndexFunc(rules, func(r *api.ACLBindingRule) bool { return r.BindName == l.name+apiGatewayRole })
	rules[own].Selector = "" // every task would be an API gateway
	if _, _, err := management(t).ACL().BindingRuleUpdate(rules[own], nil); err != nil {
		t.Fatal(err)
	}
	if changes := mustEnsure(t, s); len(changes) != 1 || changes[0].Changed[0] != "Selector" {
		t.Errorf("changes:\n%s", text(changes))
	}
}

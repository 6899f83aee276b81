package consulutil

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

const serviceTag = "consul.hashicorp.com.service-name"

// cluster is a real server on its way from no ACL object to a login that works.
type cluster struct {
	t      *testing.T
	admin  *api.Client
	fake   *awstest.AWS
	bearer string
	method string
}

func (c *cluster) authMethod(path string, tags ...string) {
	c.t.Helper()
	_, _, err := c.admin.ACL().AuthMethodCreate(
		&api.ACLAuthMethod{Name: c.method, Type: "aws-iam", Config: map[string]any{
			"BoundIAMPrincipalARNs":  []string{"arn:aws:iam::123456789012:role/" + path + "/*"},
			"EnableIAMEntityDetails": true,
			"IAMEntityTags":          append(tags, serviceTag),
			"STSEndpoint":            c.fake.URL,
			"IAMEndpoint":            c.fake.URL,
		}}, nil)
	c.must(err)
}

func (c *cluster) rule(kind api.BindingRuleBindType, name, selector string) {
	c.t.Helper()
	_, _, err := c.admin.ACL().BindingRuleCreate(
		&api.ACLBindingRule{AuthMethod: c.method, BindType: kind, BindName: name, Selector: selector}, nil)
	c.must(err)
}

func (c *cluster) policy(name string) *api.ACLPolicy {
	c.t.Helper()
	p, _, err := c.admin.ACL().PolicyCreate(&api.ACLPolicy{Name: name, Rules: `service "web" { policy = "write" }`},
		nil)
	c.must(err)
	return p
}

func (c *cluster) role(name string, policies ...string) {
	c.t.Helper()
	role := &api.ACLRole{Name: name}
	for _, p := range policies {
		role.Policies = append(role.Policies, &api.ACLRolePolicyLink{Name: p})
	}
	_, _, err := c.admin.ACL().RoleCreate(role, nil)
	c.must(err)
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// newCluster returns a cluster that has a task role with a service tag, and an auth method's name.
func newCluster(t *testing.T, server *testkit.Consul, method string) *cluster {
	t.Helper()
	fake := awstest.New(t,
		awstest.Role{Account: "123456789012", Path: "/consul-ecs/",
			Name: "web-role", Tags: map[string]string{serviceTag: "web"}})
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", fake.CredentialsURI())
	c := &cluster{t: t, admin: client(t, server, server.Token), fake: fake, method: method}
	signer, err := awsutil.NewSigner(t.Context(),
		awsutil.LoadOptions{DefaultRegion: "us-west-2", UserAgent: "consul-ecs", Version: "v0"})
	c.must(err)
	c.bearer, err = signer.Bearer(t.Context(), awsutil.BearerOptions{IncludeEntity: true})
	c.must(err)
	return c
}

// What Consul 1.20 answers to a login, and to a registration with its token, while
// ACL objects are missing or exclude the principal. No binding rule, none that
// matches, and one whose role or policy is missing cannot be distinguished.
func TestAnswersWhileACLObjectsAreMissing(t *testing.T) {
	const denied = "403 (Permission denied)"
	const register = "403 (Permission denied: token with AccessorID"
	for i, tt := range []struct {
		name    string
		prepare func(c *cluster)
		// answer begins with the status; empty when all works.
		answer     string
		registered bool // it is the registration's
		want       retry.Class
	}{
		{"no auth method", func(*cluster) {}, "403 (ACL not found: auth method", false, retry.NotYet},
		{"no binding rule", func(c *cluster) { c.authMethod("consul-ecs") }, denied, false, retry.NotYet},
		{"no rule that matches",
			func(c *cluster) { c.authMethod("consul-ecs"); c.rule("service", "web", `entity_name == "other"`) }, denied,
			false, retry.NotYet},
		{"no role", func(c *cluster) { c.authMethod("consul-ecs"); c.rule("role", "missing", "") }, denied, false,
			retry.NotYet},
		{"no policy", func(c *cluster) { c.authMethod("consul-ecs"); c.rule("policy", "missing", "") }, denied, false,
			retry.NotYet},
		{"role without a policy", func(c *cluster) {
			c.authMethod("consul-ecs")
			c.role("empty")
			c.rule("role", "empty", "")
		}, register, true, retry.NotYet},
		{"role whose policy was deleted", func(c *cluster) {
			c.authMethod("consul-ecs")
			p := c.policy("deleted")
			c.role("poor", p.Name)
			c.rule("role", "poor", "")
			_, err := c.admin.ACL().PolicyDelete(p.ID, nil)
			c.must(err)
		}, register, true, retry.NotYet},
		{"principal that is not trusted", func(c *cluster) { c.authMethod("elsewhere") },
			"500 (IAM principal arn:aws:iam::123456789012:role/consul-ecs/web-role is not trusted",
			false, retry.Permanent},
		{"role without the rule's tag",
			func(c *cluster) { c.authMethod("consul-ecs", "other"); c.rule("service", "${entity_tags.other}", "") },
			`500 (invalid bind name: ""`, false, retry.Permanent},
		{"malformed bearer", func(c *cluster) { c.authMethod("consul-ecs"); c.bearer = "x" }, "500 (invalid token: ",
			false, retry.Permanent},
		{"another service's identity", func(c *cluster) { c.authMethod("consul-ecs"); c.rule("service", "other", "") },
			register, true, retry.Permanent},
		{"role and policy", func(c *cluster) {
			c.authMethod("consul-ecs")
			c.role("rich", c.policy("web-write").Name)
			c.rule("role", "rich", "")
		}, "", false, retry.NotYet},
		{"service identity", func(c *cluster) {
			c.authMethod("consul-ecs")
			c.rule("service", "${entity_tags."+serviceTag+"}", "")
		}, "", false, retry.NotYet},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster(t, secured.Require(t), fmt.Sprintf("answers-%d", i))
			tt.prepare(c)
			token, err := Login(t.Context(), client(t, secured, ""), LoginParams{Method: c.method, Bearer: c.bearer})
			if tt.registered != (err == nil) && tt.answer != "" {
				t.Fatalf("login: %v", err)
			}
			if err == nil {
				err = token.Explain(
					client(t, secured,
						token.Secret).Agent().ServiceRegister(&api.AgentServiceRegistration{Name: "web"}))
			}
			if tt.answer == "" {
				c.must(err)
				return
			}
			if got := fmt.Sprintf("%d (%s", Status(err), Reason(err)); !strings.HasPrefix(got+")", tt.answer) ||
				ClassifyNewToken(err) != tt.want {
				t.Errorf("answer %s), class %v; want %s, %v", got, ClassifyNewToken(err), tt.answer, tt.want)
			}
		})
	}
}

// The answers of a server whose ACL system has no token yet.
func TestAnswersBeforeTheACLBootstrap(t *testing.T) {
	server, err := testkit.StartConsul(testkit.ConsulOptions{HCL: `acl { enabled = true default_policy = "allow" }`})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	c := newClient(t, Options{Address: server.Require(t).HTTPAddr, Token: strangeToken})
	_, err = Login(t.Context(), newClient(t, Options{Address: server.HTTPAddr}),
		LoginParams{Method: "iam", Bearer: "x"})
	if Status(err) != http.StatusForbidden || Classify(err) != retry.NotYet {
		t.Errorf("login: class %v, %v", Classify(err), err)
	}
	err = c.Agent().ServiceRegister(&api.AgentServiceRegistration{Name: "web"})
	if !strings.Contains(Reason(err), "ACL system must be bootstrapped") || ClassifyNewToken(err) != retry.NotYet {
		t.Errorf("register: class %v, %v", Classify(err), err)
	}
}

// awsAnswer returns what Consul says about a refusal of AWS.
func awsAnswer(code, message string) string {
	return "received error code 403: <ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\n  <Error>\n" +
		"    <Type>Sender</Type>\n    <Code>" + code + "</Code>\n    <Message>" + message + "</Message>\n  </Error>\n" +
		"  <RequestId>1</RequestId>\n</ErrorResponse>\n"
}

// What the user can do stands in the error, for each answer that is known.
func TestLoginClassifiesAndExplainsRefusals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status       int
		answer, want string
		class        retry.Class
	}{
		{403, `ACL not found: auth method "nope" not found`, "consulLogin.method", retry.NotYet},
		{403, "Permission denied", serviceTag, retry.NotYet},
		{500, "IAM principal arn:aws:iam::1:role/x is not trusted", "BoundIAMPrincipalARNs", retry.Permanent},
		{500, `missing header "X-Consul-IAM-ServerID"`, "serverIdHeaderValue", retry.Permanent},
		{500, `expected "a" but got "b"`, "serverIdHeaderValue", retry.Permanent},
		{500, `missing header "X-Consul-IAM-GetEntity-Method"`, "includeEntity", retry.Permanent},
		{500, "invalid token: unexpected end of JSON input", "login's format", retry.Permanent},
		{500, `invalid bind name: ""`, serviceTag, retry.Permanent},
		{500, "response body is invalid", "iam:GetRole", retry.NotYet}, // IAM may not be consistent yet
		{500, awsAnswer("AccessDenied", "User: x is not authorized to perform: iam:GetRole on resource: role y"),
			"on resource: role y): allow iam:GetRole on the task role itself", retry.NotYet},
		{500, awsAnswer("SignatureDoesNotMatch", "Signature expired: 1 is now earlier than 2"),
			"(received error code 403: SignatureDoesNotMatch: Signature expired: 1 is now earlier than 2): the clocks",
			retry.NotYet},
		{500, awsAnswer("SignatureDoesNotMatch", "Signature not yet current: 2 is still later than 1"), "the clocks",
			retry.NotYet},
		{500, awsAnswer("Throttling", "Rate exceeded"), "AWS throttles", retry.NotYet},
		{500, awsAnswer("ExpiredToken", "The security token included in the request is expired"), "have expired",
			retry.NotYet},
		{500, awsAnswer("InvalidClientTokenId", "The security token included in the request is invalid."),
			"consulLogin.region", retry.NotYet},
		{500, awsAnswer("Other", "something"), "Other: something): AWS refused", retry.NotYet},
		{500, "received error code 503: <html>", "AWS fails at the moment", retry.NotYet},
		{500, "error making request: POST https://sts.eu-west-1.amazonaws.com/ giving up", "do not reach AWS",
			retry.NotYet},
		{500, "No path to datacenter", "consulLogin.datacenter", retry.NotYet},
		{500, "No cluster leader", "", retry.NotYet},
		{429, "rate limit", "", retry.NotYet},
		{401, "ACL support disabled", "consulLogin.enabled", retry.Permanent},
		{400, "Client sent an HTTP request to an HTTPS server.", "https://", retry.Permanent},
	} {
		err := explainLogin("iam", fmt.Errorf("post: %w", api.StatusError{Code: tt.status, Body: tt.answer}))
		for _, want := range []string{`auth method "iam"`, tt.want} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q in it", tt.answer, err, want)
			}
		}
		testkit.Equal(t, "lines of "+tt.answer, strings.Count(err.Error(), "\n"), 0)
		testkit.Equal(t, "class of "+tt.answer, Classify(err), tt.class)
	}
}

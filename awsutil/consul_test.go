package awsutil_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

var server *testkit.Consul

func TestMain(m *testing.M) {
	var err error
	if server, err = testkit.StartConsul(testkit.ConsulOptions{ACL: true}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(testkit.Main(m, server.Stop))
}

// TestRealConsulAcceptsTheBearer: Consul's own validator is the judge.
func TestRealConsulAcceptsTheBearer(t *testing.T) {
	admin := consul(t, testkit.ManagementToken)
	fake := awstest.New(t, awstest.Role{
		Account: "123456789012", Path: "/consul-ecs/", Name: "web-role",
		Tags: map[string]string{"consul.hashicorp.com.service-name": "web"},
	})
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_CONFIG_FILE", none)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", fake.CredentialsURI())

	tests := []struct {
		name string
		// more is laid over a method that trusts the role's path.
		more map[string]any
		o    awsutil.BearerOptions
		// want is part of the refusal; empty for success.
		want string
	}{
		{"role with details", nil, awsutil.BearerOptions{IncludeEntity: true}, ""},
		{
			"server ID", map[string]any{"ServerIDHeaderValue": "consul.example"},
			awsutil.BearerOptions{IncludeEntity: true, ServerID: "consul.example"}, "",
		},
		{
			"no server ID", map[string]any{"ServerIDHeaderValue": "consul.example"},
			awsutil.BearerOptions{IncludeEntity: true}, "X-Consul-IAM-ServerID",
		},
		{
			"other server ID", map[string]any{"ServerIDHeaderValue": "consul.example"},
			awsutil.BearerOptions{IncludeEntity: true, ServerID: "x"}, "but got",
		},
		{"no details although asked for", nil, awsutil.BearerOptions{}, "includeEntity"},
		{"exact ARN, no details", map[string]any{
			"BoundIAMPrincipalARNs":  []string{"arn:aws:iam::123456789012:role/web-role"},
			"EnableIAMEntityDetails": false, "IAMEntityTags": nil,
		}, awsutil.BearerOptions{}, ""},
		{
			"another path is trusted", map[string]any{
				"BoundIAMPrincipalARNs": []string{"arn:aws:iam::123456789012:role/other/*"},
			}, awsutil.BearerOptions{IncludeEntity: true}, "role/consul-ecs/web-role is not trusted",
		},
		{
			"no rule binds", map[string]any{"IAMEntityTags": []string{"another-tag"}},
			awsutil.BearerOptions{IncludeEntity: true}, "tag the task role",
		},
		{"own STS endpoint", nil, awsutil.BearerOptions{IncludeEntity: true, STSEndpoint: fake.URL}, ""},
		{"China", nil, awsutil.BearerOptions{IncludeEntity: true, Partition: "aws-cn"}, ""},
		{"GovCloud", nil, awsutil.BearerOptions{IncludeEntity: true, Partition: "aws-us-gov"}, ""},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			method := fmt.Sprintf("iam-%d", i)
			createMethod(t, admin, method, fake, tt.more)
			signer, err := awsutil.NewSigner(context.Background(),
				awsutil.LoadOptions{DefaultRegion: "us-west-2", UserAgent: "consul-ecs", Version: "v0"})
			if err != nil {
				t.Fatal(err)
			}
			bearer, err := signer.Bearer(context.Background(), tt.o)
			if err != nil {
				t.Fatal(err)
			}
			token, err := consulutil.Login(context.Background(), consul(t, ""),
				consulutil.LoginParams{Method: method, Bearer: bearer})
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error = %v, want one with %q", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := consul(t, token.Secret).ACL().TokenReadSelf(nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.ServiceIdentities) != 1 || got.ServiceIdentities[0].ServiceName != "web" {
				t.Errorf("token = %+v, want the service identity web", got)
			}
		})
	}
}

func createMethod(t *testing.T, admin *api.Client, name string, fake *awstest.AWS, more map[string]any) {
	t.Helper()
	cfg := map[string]any{
		"BoundIAMPrincipalARNs":  []string{"arn:aws:iam::123456789012:role/consul-ecs/*"},
		"EnableIAMEntityDetails": true,
		"IAMEntityTags":          []string{"consul.hashicorp.com.service-name"},
		"STSEndpoint":            fake.URL,
		"IAMEndpoint":            fake.URL,
	}
	bind := "${entity_tags.consul.hashicorp.com.service-name}"
	for k, v := range more {
		cfg[k] = v
	}
	if cfg["EnableIAMEntityDetails"] == false {
		bind = "web"
	}
	rule := &api.ACLBindingRule{AuthMethod: name, BindType: "service", BindName: bind}
	if tags, ok := cfg["IAMEntityTags"].([]string); ok && tags[0] == "another-tag" {
		rule.BindName, rule.Selector = "web", `entity_tags["another-tag"] == "x"`
	}
	if _, _, err := admin.ACL().AuthMethodCreate(&api.ACLAuthMethod{Name: name, Type: "aws-iam", Config: cfg},
		nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := admin.ACL().BindingRuleCreate(rule, nil); err != nil {
		t.Fatal(err)
	}
}

func consul(t *testing.T, token string) *api.Client {
	t.Helper()
	c, err := consulutil.NewClient(consulutil.Options{Address: server.Require(t).HTTPAddr, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

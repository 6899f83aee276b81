package iam_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
)

// authMethod makes an aws-iam auth method and its rule, as the ACL controller
// does for service tokens, with our STS and IAM behind it.
func authMethod(t *testing.T, name, endpoint string) *api.Client {
	t.Helper()
	srv := server.Require(t)
	c, err := consulutil.NewClient(consulutil.Options{Address: srv.HTTPAddr, Token: srv.Token})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = c.ACL().AuthMethodCreate(&api.ACLAuthMethod{Name: name, Type: "aws-iam", Config: map[string]any{
		// Without a path: Consul appends that of the signed URL.
		"STSEndpoint":            endpoint,
		"IAMEndpoint":            endpoint,
		"BoundIAMPrincipalARNs":  []string{"arn:aws:iam::" + account + ":role/consul-ecs/*"},
		"EnableIAMEntityDetails": true,
		"IAMEntityTags":          []string{"consul.hashicorp.com.service-name"},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = c.ACL().BindingRuleCreate(&api.ACLBindingRule{
		AuthMethod: name, BindType: api.BindingRuleBindTypeService,
		BindName: "${entity_tags.consul.hashicorp.com.service-name}",
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestConsulLoginGetsServiceIdentityFromRoleTag(t *testing.T) {
	t.Parallel()
	store := iam.NewStore()
	sts := httptest.NewServer(iam.New(store, region))
	defer sts.Close()
	consul := authMethod(t, "login-ok", sts.URL)
	key := issue(t, store, productAPI(), time.Now())
	for name, urls := range map[string][2]string{
		"signed for the local endpoint": {sts.URL + "/", sts.URL + "/"},
		// As consul-ecs does without stsEndpoint: Consul relays the signed Host.
		"signed for AWS": {"https://sts.us-west-2.amazonaws.com/", "https://iam.amazonaws.com/"},
	} {
		t.Run(name, func(t *testing.T) {
			token, _, err := consul.ACL().Login(&api.ACLLoginParams{
				AuthMethod: "login-ok", BearerToken: bearer(t, urls[0], urls[1], key, "product-api-task").encode(t),
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(token.ServiceIdentities) != 1 || token.ServiceIdentities[0].ServiceName != "product-api" {
				t.Errorf("service identities %+v, want product-api", token.ServiceIdentities)
			}
			if _, err := consul.ACL().Logout(&api.WriteOptions{Token: token.SecretID}); err != nil {
				t.Errorf("logout: %v", err)
			}
		})
	}
}

// The whole way of a task: credentials endpoint, signed bearer, Consul, STS and
// IAM; and the same again after a rotation.
func TestTaskLogsInWithItsOwnCredentials(t *testing.T) { // not parallel: sets the environment
	store := iam.NewStore()
	sts := httptest.NewServer(iam.New(store, region))
	defer sts.Close()
	creds := httptest.NewServer(iam.Handler(store))
	defer creds.Close()
	consul := authMethod(t, "login-task", sts.URL)
	store.PutRole(productAPI())
	id, err := store.Issue(productAPI().ARN(), signerTaskID, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", creds.URL+iam.RelativeURI(id))
	for _, moment := range []string{"first key", "rotated key"} {
		signer, err := awsutil.NewSigner(t.Context(),
			awsutil.LoadOptions{Region: region, UserAgent: "consul-ecs", Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		bearer, err := signer.Bearer(t.Context(), awsutil.BearerOptions{Partition: "aws", IncludeEntity: true})
		if err != nil {
			t.Fatalf("%s: %v", moment, err)
		}
		token, err := consulutil.Login(t.Context(), consul,
			consulutil.LoginParams{Method: "login-task", Bearer: bearer})
		if err != nil {
			t.Fatalf("%s: %v", moment, err)
		}
		self, _, err := consul.ACL().TokenReadSelf(&api.QueryOptions{Token: token.Secret})
		if err != nil || len(self.ServiceIdentities) != 1 {
			t.Fatalf("%s: token %+v, %v", moment, self, err)
		}
		testkit.Equal(t, moment+": ServiceIdentities[0].ServiceName", self.ServiceIdentities[0].ServiceName,
			"product-api")
		if err := store.Rotate(id, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestConsulLoginIsRefused(t *testing.T) {
	t.Parallel()
	store := iam.NewStore()
	sts := httptest.NewServer(iam.New(store, region))
	defer sts.Close()
	consul := authMethod(t, "login-refused", sts.URL)
	key := issue(t, store, productAPI(), time.Now())
	expired := issue(t, store, productAPI(), time.Now().Add(-iam.Lifetime-time.Minute))
	other := productAPI()
	other.Name, other.Path = "outsider", "/other/"
	outsider := issue(t, store, other, time.Now())
	for name, c := range map[string]struct {
		token  bearerToken
		refuse string
	}{
		"signature changed": {tampered(t, bearer(t, sts.URL+"/", sts.URL+"/", key, "product-api-task")),
			"<Code>SignatureDoesNotMatch</Code>"},
		"credentials expired": {bearer(t, sts.URL+"/", sts.URL+"/", expired, "product-api-task"),
			"<Code>ExpiredToken</Code>"},
		"role of another path": {bearer(t, sts.URL+"/", sts.URL+"/", outsider, "outsider"), "not trusted"},
		"another role":         {bearer(t, sts.URL+"/", sts.URL+"/", key, "outsider"), "<Code>AccessDenied</Code>"},
		"signed for another host": {moved(bearer(t, sts.URL+"/", sts.URL+"/", key, "product-api-task")),
			"<Code>SignatureDoesNotMatch</Code>"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := consul.ACL().Login(&api.ACLLoginParams{AuthMethod: "login-refused",
				BearerToken: c.token.encode(t)}, nil)
			if err == nil || !strings.Contains(err.Error(), c.refuse) {
				t.Errorf("login: %v, want %q", err, c.refuse)
			}
		})
	}
}

// tampered changes the last digit of the signature.
func tampered(t *testing.T, b bearerToken) bearerToken {
	t.Helper()
	auth := b.Header.Get("Authorization")
	last := "0"
	if strings.HasSuffix(auth, "0") {
		last = "1"
	}
	b.Header.Set("Authorization", auth[:len(auth)-1]+last)
	return b
}

func moved(b bearerToken) bearerToken {
	b.URL = "https://sts.eu-west-1.amazonaws.com/"
	return b
}

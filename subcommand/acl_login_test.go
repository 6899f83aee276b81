package subcommand

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/consulutil"
)

// method makes an auth method with binding rules.
func (w *aclWorld) method(t *testing.T, m *api.ACLAuthMethod, rules ...api.ACLBindingRule) {
	t.Helper()
	if _, _, err := w.admin.ACL().AuthMethodCreate(m, nil); err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		r.AuthMethod = m.Name
		if _, _, err := w.admin.ACL().BindingRuleCreate(&r, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func aclJWT(t *testing.T, w *aclWorld) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	w.method(t, &api.ACLAuthMethod{Name: "people", Type: "jwt", Config: map[string]any{
		"JWTValidationPubKeys": []string{string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))},
		"ClaimMappings":        map[string]string{"https://example.com/team": "team"},
		"ListClaimMappings":    map[string]string{"grp": "groups"},
	}},
		api.ACLBindingRule{Selector: `"admin" in list.groups`, BindType: "role", BindName: "ops"},
		api.ACLBindingRule{Selector: `value.team != "" and not value.team == "none" and "users" not in list.groups and "admin" not in list.groups`, BindType: "service", BindName: "${value.team}"},
		api.ACLBindingRule{Selector: `value.teem == "x"`, BindType: "role", BindName: "gone"},
	)
	for args, want := range map[string]struct {
		reply
		end string // of the line
	}{
		"can -login people -group admin -group users service:api write": {reply{"allow    service:api write  by " +
			"service_prefix \"\" = write, login by auth method \"people\" → binding rule ", "", 0},
			`… → role "ops" → policy "ops" line 5`},
		"can -login people -claim team=Web service:web-sidecar-proxy write": {reply{"allow    service:web-sidecar-proxy write  by service \"web-sidecar-proxy\" = write, login by auth method \"people\" → binding rule ", "", 0}, `… → service identity "web"`},
		"can -login people -group users service:web read": {reply{"deny     service:web read  login " +
			"by auth method \"people\": no binding rule matches, so the login is denied", "", 2}, ""},
		"can -login people -claim team=a/b service:web read": {reply{"deny     service:web read  login " +
			"by auth method \"people\" → binding rule ", "", 2},
			`: bind name "${value.team}" becomes "a/b", which is not a valid name: this rule alone makes the whole login fail`},
		"can -login people -claim tem=a service:web read": {reply{"unknown  service:web read  no " +
			"rule that could be read applies, and others could not be read",
			"could not be read:\n  login by auth method \"people\": it reads no claim as \"tem\", but as values " +
				"[\"team\"], as lists [\"groups\"]\n", 3}, ""},
		"can -login persons service:web read": {reply{"unknown  service:web read  no " +
			"rule that could be read applies, and others could not be read",
			"could not be read:\n  login by auth method \"persons\": there is no such auth method\n", 3}, ""},
	} {
		got := w.ask(t, asked{token: w.Token, args: args})
		if !strings.HasPrefix(got.out, want.out) || !strings.HasSuffix(got.out, want.end+"\n") || got.err != want.err ||
			got.code != want.code {
			t.Errorf("acl %s: %+v, want %+v", args, got, want)
		}
	}
	got := w.ask(t, asked{token: w.Token, args: "lint"})
	for _, want := range []string{
		` of people: selector: "value.teem == \"x\"": value.teem is not mapped by the auth method`,
		` of people: dangling: role "gone" does not exist: no login gets it`,
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("lint does not say %s:\n%s", want, got.out)
		}
	}
}

// What -login predicts, a real login by the same role gets.
func TestACLPredictsTheRightsOfARealLogin(t *testing.T) {
	w := newACLWorld(t)
	const tag = "consul.hashicorp.com.service-name"
	fake := awstest.New(t, awstest.Role{Account: "123456789012", Path: "/consul-ecs/", Name: "Web-Role",
		Tags: map[string]string{tag: "Web", "team": "blue"}})
	w.method(t, &api.ACLAuthMethod{Name: "iam", Type: "aws-iam", Config: map[string]any{
		"BoundIAMPrincipalARNs":  []string{"arn:aws:iam::123456789012:role/consul-ecs/*"},
		"EnableIAMEntityDetails": true,
		"IAMEntityTags":          []string{tag, "team"}, "STSEndpoint": fake.URL, "IAMEndpoint": fake.URL,
	}},
		api.ACLBindingRule{BindType: "service", BindName: "${entity_tags." + tag + "}"},
		api.ACLBindingRule{Selector: `entity_tags.team == "blue" and entity_path == "/consul-ecs/"`, BindType: "role",
			BindName: "ops"},
		api.ACLBindingRule{Selector: `entity_tags.team == "red"`, BindType: "policy", BindName: "eu-only"},
		// The method does not map this tag, so the selector matches every login.
		api.ACLBindingRule{Selector: `entity_tags.tier matches "ops"`, BindType: "service", BindName: "tier"},
		api.ACLBindingRule{Selector: `entity_name == "Web-Role" and account_id == "123456789012"`, BindType: "node",
			BindName: "${entity_name}"},
	)
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_CONFIG_FILE", none)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", fake.CredentialsURI())
	signer, err := awsutil.NewSigner(context.Background(), awsutil.LoadOptions{DefaultRegion: "us-west-2",
		UserAgent: "consul-ecs", Version: "v0"})
	if err != nil {
		t.Fatal(err)
	}
	bearer, err := signer.Bearer(context.Background(), awsutil.BearerOptions{IncludeEntity: true})
	if err != nil {
		t.Fatal(err)
	}
	anonymous, err := consulutil.NewClient(consulutil.Options{Address: w.HTTPAddr})
	if err != nil {
		t.Fatal(err)
	}
	token, err := consulutil.Login(context.Background(), anonymous, consulutil.LoginParams{Method: "iam",
		Bearer: bearer})
	if err != nil {
		t.Fatal(err)
	}
	w.file(t, "task.token", token.Secret)

	var questions strings.Builder
	for _, what := range []string{"service:web", "service:web-sidecar-proxy", "service:api",
		"service:tier-sidecar-proxy", "service:tier", "node:web-role", "node:Web-Role", "key:app/x", "acl", "operator",
		"mesh"} {
		fmt.Fprintf(&questions, "%s read\n%s write\n", what, what)
	}
	login := "-login iam -entity-name Web-Role -account-id 123456789012 -entity-path /consul-ecs/ -entity-tag " + tag +
		"=Web -entity-tag team=blue"
	predicted := w.ask(t, asked{token: w.Token, stdin: questions.String(), args: "can -queries - " + login})
	real := w.ask(t, asked{token: w.Token, stdin: questions.String(),
		args: "can -engine server -token-file @task.token -queries -"})
	both := w.ask(t, asked{token: w.Token, stdin: questions.String(),
		args: "can -engine both -token-file @task.token -queries -"})
	if decisions(predicted.out) != decisions(real.out) || decisions(both.out) != decisions(real.out) ||
		!strings.Contains(decisions(real.out), "allow deny") {
		t.Errorf("predicted %s\nreal     %s\nboth     %s", decisions(predicted.out), decisions(real.out),
			decisions(both.out))
	}
	// Without its tags the login of the same role fails.
	got := w.ask(t, asked{token: w.Token, args: "can -login iam -entity-name Web-Role service:web read"})
	if want := `: bind name "${entity_tags.` + tag +
		`}" becomes "", which is not a valid name: this rule alone makes the whole login fail` + "\n"; got.code != 2 ||
		!strings.HasSuffix(got.out, want) {
		t.Errorf("without tags: %+v", got)
	}
}

// decisions returns the first words of all lines.
func decisions(out string) string {
	var words []string
	for line := range strings.Lines(out) {
		words = append(words, strings.Fields(line)[0])
	}
	return strings.Join(words, " ")
}

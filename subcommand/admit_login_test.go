package subcommand

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/config"
)

// What a login of the task role would get is compared with what the task needs, by the
// auth method and binding rules of a real Consul.
func TestAdmitComparesTheLoginOfTheTaskRole(t *testing.T) {
	c, admin := consulWithACLs(t)
	w := &admitWorld{c, admin.ACL()}
	role := iamRole{"/consul-ecs/", serviceTag("app"), ecsTrust, "allowed", []string{"app"}}
	startIAM(t, http.StatusOK, role)
	doc, mesh := loginTask(t)
	withKeys := strings.Replace(doc, withEntryPoint,
		withEntryPoint+`, "dockerLabels": {"consul.hashicorp.com/kv-prefixes": "app/"}`, 1)
	call := func(doc, token string) (int, string) {
		code, _, stderr := callAdmit(doc, "-config", mesh, "-consul-addr", w.HTTPAddr, "-token-file", token,
			"-check-iam", "-")
		return code, withoutChoices(stderr)
	}
	reader := w.file(t, w.Token)
	blind := w.token(t, strings.ReplaceAll(webRules, "web", "app"))

	if code, stderr := call(doc, reader); code != 0 || !strings.Contains(stderr, "warning ADM-IAM-RIGHT-UNKNOWN") ||
		!strings.Contains(stderr, "there is no such auth method") {
		t.Errorf("without the auth method: exit %d, stderr %s", code, stderr)
	}
	method := &api.ACLAuthMethod{Name: config.ServiceAuthMethod, Type: "aws-iam", Config: map[string]any{
		"BoundIAMPrincipalARNs":  []string{"arn:aws:iam::123456789012:role/consul-ecs/*"},
		"EnableIAMEntityDetails": true, "IAMEntityTags": []string{config.TagServiceName},
	}}
	if _, _, err := w.acl.AuthMethodCreate(method, nil); err != nil {
		t.Fatal(err)
	}
	if code, stderr := call(doc, reader); code != 2 || !strings.Contains(stderr, "error ADM-IAM-ROLE $.taskRoleArn") ||
		!strings.Contains(stderr, "no binding rule matches") {
		t.Errorf("without a binding rule: exit %d, stderr %s", code, stderr)
	}
	if _, _, err := w.acl.BindingRuleCreate(&api.ACLBindingRule{AuthMethod: method.Name, BindType: "service",
		BindName: "${entity_tags." + config.TagServiceName + "}"}, nil); err != nil {
		t.Fatal(err)
	}
	if code, stderr := call(doc, reader); code != 0 || stderr != "" {
		t.Errorf("granted: exit %d, stderr %s", code, stderr)
	}
	if err := os.WriteFile(mesh,
		[]byte(`{"consulServers": {"hosts": "10.0.0.4"}, "consulLogin": {"enabled": true}, "proxy": {"mode": "direct", "upstreams": [
		{"destinationName": "nearest", "destinationType": "prepared_query", "localBindPort": 9001}, {"destinationName": "far", "destinationPeer": "east", "localBindPort": 9002}]},
		"admission": {"images": {"consulECS": "example/consul-ecs:1"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, stderr := call(doc, reader); code != 0 || stderr != "" {
		t.Errorf("with a prepared query and a peer's service: exit %d, stderr %s", code, stderr)
	}
	if code, stderr := call(withKeys, reader); code != 2 || strings.Count(stderr, "ADM-IAM-RIGHT") != 1 ||
		!strings.Contains(stderr,
			`would not allow key:app/ read, which the task needs to read keys below the prefix app/ (add key_prefix "app/"`) {
		t.Errorf("keys: exit %d, stderr %s", code, stderr)
	}
	if code, stderr := call(doc, blind); code != 0 || !strings.Contains(stderr, "ADM-IAM-RIGHT-UNKNOWN") ||
		!strings.Contains(stderr, "not readable with this token") {
		t.Errorf("without acl:read: exit %d, stderr %s", code, stderr)
	}
}

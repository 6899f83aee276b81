package subcommand

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// why runs the command with a server and a token.
func why(t *testing.T, address, token string, args ...string) (code int, output string) {
	t.Helper()
	line := testkit.SelfArgs("consul-ecs", append([]string{"why"}, args...)...)
	cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "CONSUL_HTTP_ADDR="+address, "CONSUL_HTTP_TOKEN="+token)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// TestWhy asks a real server, which has web and api; ghost and billing lack something.
func TestWhy(t *testing.T) {
	t.Parallel()
	m := newCallMesh(t, testkit.ConsulOptions{ACL: true})
	m.register("web", m.right())
	m.register("api", m.right())
	critical := m.right()
	critical.status = api.HealthCritical
	m.register("billing", critical)
	for _, entry := range []string{
		`{"Kind": "service-defaults", "Name": "api", "Protocol": "http"}`,
		`{"Kind": "service-defaults", "Name": "billing", "Protocol": "http"}`,
		`{"Kind": "service-router", "Name": "api", "Routes": [{"Match": {"HTTP": {"PathPrefix": "/billing",
			"Header": [{"Name": "x-new", "Exact": "1"}]}}, "Destination": {"Service": "billing"}}]}`,
		`{"Kind": "service-intentions", "Name": "api", "Sources": [{"Name": "web", "Permissions": [
			{"Action": "deny", "HTTP": {"PathPrefix": "/admin"}},
			{"Action": "allow", "HTTP": {"PathPrefix": "/", "Methods": ["GET"]}}]}]}`,
	} {
		if !m.write(entry) {
			t.Fatalf("the server refuses %s", entry)
		}
	}
	identity, _, err := m.client.ACL().TokenCreate(&api.ACLToken{
		ServiceIdentities: []*api.ACLServiceIdentity{{ServiceName: "web"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	limited := func(name, rules string) string {
		if _, _, err := m.client.ACL().PolicyCreate(&api.ACLPolicy{Name: name, Rules: rules}, nil); err != nil {
			t.Fatal(err)
		}
		made, _, err := m.client.ACL().TokenCreate(&api.ACLToken{Policies: []*api.ACLLink{{Name: name}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return made.SecretID
	}
	noAPI := limited("no-api", `service_prefix "web" { policy = "read" } node_prefix "" { policy = "read" }`)
	noNodes := limited("no-nodes", `service_prefix "" { policy = "read" }`)
	noIntentions := limited("no-intentions",
		`service_prefix "" { policy = "read" intentions = "deny" } node_prefix "" { policy = "read" }`)
	server, token := m.consul.HTTPAddr, m.consul.Token
	for name, c := range map[string]struct {
		server, token, args string
		code                int
		has                 []string
	}{
		"can": {server, token, "web api", exit.CodeOK, []string{"web can call api\n"}},
		"all links": {server, token, "web api -v", exit.CodeOK,
			[]string{"ok       upstream: the application connects to",
				"ok       intention: permission 2 of intention web => api allows GET /",
				"ok       certificates: trust domain "}},
		"JSON": {server, token, "web api -json", exit.CodeOK, []string{`"result": "ok"`, `"link": "caller proxy"`}},
		"path": {server, token, "web api -path /admin", exit.CodeRefused, []string{"web cannot call api",
			"denies GET /admin", "fix: "}},
		"method": {server, token, "web api -method post", exit.CodeRefused,
			[]string{"no permission of intention web => api fits POST /"}},
		"route": {server, token, "web api -path /billing?a=1 -header x-new=1", exit.CodeRefused,
			[]string{"billing", "healthy; billing-1-sidecar-proxy: Container billing is critical (from ECS)"}},
		"no upstream": {server, token, "web billing", exit.CodeRefused,
			[]string{"upstream: web has no upstream for billing"}},
		"not registered": {server, token, "web ghost", exit.CodeRefused,
			[]string{"web has no upstream for ghost"}},
		"no caller": {server, token, "ghost api", exit.CodeRefused,
			[]string{"caller: ghost is not registered"}},
		"no peer": {server, token, "web api -peer east", exit.CodeRefused,
			[]string{"web has no upstream for api of peer east"}},
		"a task's token": {server, identity.SecretID, "web api", exit.CodeOK, []string{"web can call api\n"}},
		"no rights for api": {server, noAPI, "web api", exit.CodeUnknown,
			[]string{"may not read it: it needs service \"api\" read"}},
		"no rights for nodes": {server, noNodes, "web api", exit.CodeUnknown, []string{"caller: not known",
			"node_prefix \"\" read"}},
		"no rights for intentions": {server, noIntentions, "web api", exit.CodeUnknown, []string{"intention: not known",
			"intentions = \"read\""}},
		"no token": {server, "", "web api", exit.CodeUnknown,
			[]string{"there is no token, CONSUL_HTTP_TOKEN"}},
		"unknown token": {server, "11111111-2222-3333-4444-555555555555", "web api", exit.CodeUnknown,
			[]string{"ACL not found"}},
		"no server": {testkit.ClosedAddress(t), token, "web api", exit.CodeUnknown,
			[]string{"CONSUL_HTTP_ADDR"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, output := why(t, c.server, c.token, strings.Fields(c.args)...)
			testkit.Equal(t, "exit code", code, c.code)
			for _, text := range c.has {
				if !strings.Contains(output, text) {
					t.Errorf("got %s, want %q in it", output, text)
				}
			}
			if c.token != "" && strings.Contains(output, c.token) {
				t.Error("the output has the token")
			}
		})
	}
}

func TestWhyUsage(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"web":                           "want two services",
		"web api x":                     "want two services",
		"web *":                         `"*" is not the name of a service`,
		"web api -path admin":           `-path "admin": want a path`,
		"web api -header a":             "want NAME=VALUE",
		"web api -peer e -datacenter d": "-peer excludes",
	} {
		var out bytes.Buffer
		code := cli.Main(cli.App{Name: "consul-ecs", Commands: commands()}, append([]string{"why"},
			strings.Fields(args)...),
			func(string) string { return "" }, strings.NewReader(""), &out, &out)
		got := map[string]any{"code": code, "says why": strings.Contains(out.String(), want)}
		if diff := cmp.Diff(map[string]any{"code": exit.CodeUsage, "says why": true}, got); diff != "" {
			t.Errorf("why %s (-want +got):\n%s%s", args, diff, out.String())
		}
	}
}

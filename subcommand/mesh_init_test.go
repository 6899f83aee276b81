package subcommand

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/workload"
)

func TestMeshInitRefusesAWrongCall(t *testing.T) {
	t.Parallel()
	const valid = `{"bootstrapDir":"/nonexistent"}`
	for name, tc := range map[string]struct {
		config, metadata string
		args             []string
		stderr           string
	}{
		"stray argument": {valid, "http://127.0.0.1:1", []string{"now"}, `unexpected argument "now"`},
		"unknown flag": {valid, "http://127.0.0.1:1", []string{"-x"},
			"flag provided but not defined: -x"},
		"unknown group": {valid, "http://127.0.0.1:1", []string{"-file-group", "no-such-group"},
			"use the numeric ID"},
		"ready without port": {valid, "http://127.0.0.1:1", []string{"-envoy-ready-bind-address=127.0.0.1"},
			"-envoy-ready-bind-port 0: want 1 to 65535"},
		"ready without address": {valid, "http://127.0.0.1:1", []string{"-envoy-ready-bind-port=22000"},
			`-envoy-ready-bind-address "": want an IP address`},
		"ready at a name": {valid, "http://127.0.0.1:1", []string{"-envoy-ready-bind-address=web",
			"-envoy-ready-bind-port=22000"}, `-envoy-ready-bind-address "web": want an IP address`},
		"no patience": {valid, "http://127.0.0.1:1", []string{"-start-timeout=0"},
			"-start-timeout 0s: want more than 0"},
		"no configuration": {"", "http://127.0.0.1:1", nil, "invalid config: "},
		"empty object":     {"{}", "http://127.0.0.1:1", nil, "$.bootstrapDir"},
		"not in a task":    {valid, "", nil, "ECS_CONTAINER_METADATA_URI_V4 is not set"},
		"metadata without scheme": {valid, "169.254.170.2/v4", nil,
			`ECS_CONTAINER_METADATA_URI_V4 is "169.254.170.2/v4"`},
		"agentless, port in the host": {`{"bootstrapDir":"/c","consulServers":{"hosts":"consul.example:8501"}}`,
			"http://127.0.0.1:1", nil, `"consul.example:8501" has a port: write "consul.example"`},
		"agentless, ready listener": {`{"bootstrapDir":"/c","consulServers":{"hosts":"consul.example"}}`,
			"http://127.0.0.1:1", []string{"-envoy-ready-bind-address=127.0.0.1", "-envoy-ready-bind-port=22000"},
			"proxy.healthCheckPort"},
		"missing volume": {valid, "http://127.0.0.1:1", nil, "/nonexistent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{"CONSUL_ECS_CONFIG_JSON": tc.config, "ECS_CONTAINER_METADATA_URI_V4": tc.metadata}
			var stdout, stderr bytes.Buffer
			app := cli.App{Name: "consul-ecs", Commands: commands()}
			code := cli.Main(app, append([]string{"mesh-init"}, tc.args...), func(k string) string { return env[k] },
				strings.NewReader(""), &stdout, &stderr)
			if code != 1 || !strings.Contains(stderr.String(), tc.stderr) {
				t.Errorf("exit code %d, %s", code, stderr.String())
			}
		})
	}
}

// agentlessTask starts Consul servers, and serves the metadata of a task at 127.0.0.1.
func agentlessTask(t *testing.T) (*testkit.Consul, *metadata) {
	t.Helper()
	c, err := testkit.StartConsul(testkit.ConsulOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Require(t).Stop)
	m := newMetadata(t)
	m.says(http.StatusOK, strings.Replace(task("RUNNING", "RUNNING", "RUNNING"), `"Type":"NORMAL"`,
		`"Type":"NORMAL","Networks":[{"IPv4Addresses":["127.0.0.1"]}]`, 1))
	return c, m
}

// TestMeshInitAgentlessProcess covers one start of a task without an agent, as a process.
func TestMeshInitAgentlessProcess(t *testing.T) {
	t.Parallel()
	c, m := agentlessTask(t)
	client, err := consulutil.NewClient(consulutil.Options{Address: c.HTTPAddr})
	if err != nil {
		t.Fatal(err)
	}
	for mode, files := range map[string][]string{
		"dataplane": {"consul-dataplane.json", "consul-ecs", "mesh-init.json"},
		"direct":    {"consul-ecs", "envoy-bootstrap.json", "mesh-init.json", "xds-relay.json"},
	} {
		dir := t.TempDir()
		name := "agentless-" + mode
		env := append(m.env(),
			fmt.Sprintf(`CONSUL_ECS_CONFIG_JSON={"bootstrapDir":%q,"consulServers":%s,"transparentProxy":{"enabled":false},
			"service":{"name":%q,"port":8080,"networkResilienceConfig":{"enabled":true}},"proxy":{"mode":%q}}`,
				dir, serversOf(c), name, mode))
		for range 2 { // twice: a rerun must not trip over the files of the first
			if code := consulECS(t, env, "mesh-init").Wait(); code != 0 {
				t.Fatalf("%s: exit code %d", mode, code)
			}
		}
		if got := names(t, dir); !slices.Equal(got, files) {
			t.Errorf("%s: files = %v, want %v", mode, got, files)
		}
		for _, service := range []string{name, name + "-sidecar-proxy"} {
			found, _, err := client.Catalog().Service(service, "", nil)
			if err != nil || len(found) != 1 || found[0].Node != "arn:aws:ecs:us-west-2:111122223333:cluster/mesh" {
				t.Errorf("%s: %s = %v, %v, want one on the cluster's node", mode, service, found, err)
			}
		}
		entry, _, err := client.ConfigEntries().Get(api.ServiceDefaults, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		check := entry.(*api.ServiceConfigEntry).UpstreamConfig.Defaults.PassiveHealthCheck
		if check == nil || check.Interval != 10*time.Second || check.MaxFailures != 5 ||
			*check.MaxEjectionPercent != 50 {
			t.Errorf("%s: passive health check = %+v, want 10s, 5 failures and 50 %%", mode, check)
		}
	}
}

// TestMeshInitWarnsOfAWrongGRPCPort checks that mesh-init names what would else show in the proxy's log alone.
func TestMeshInitWarnsOfAWrongGRPCPort(t *testing.T) {
	t.Parallel()
	c, m := agentlessTask(t)
	_, closed, err := net.SplitHostPort(testkit.ClosedAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	_, open, err := net.SplitHostPort(c.GRPCAddr)
	if err != nil {
		t.Fatal(err)
	}
	for name, port := range map[string]string{"right": open, "wrong": closed} {
		servers := strings.Replace(serversOf(c), `"grpc":{"port":`+open, `"grpc":{"port":`+port, 1)
		var log bytes.Buffer
		env := append(m.env(), fmt.Sprintf(`CONSUL_ECS_CONFIG_JSON={"bootstrapDir":%q,"consulServers":%s,
			"transparentProxy":{"enabled":false},"service":{"name":"grpc-%s","port":8080},"proxy":{"mode":"direct"}}`,
			t.TempDir(), servers, name))
		p := testkit.StartProcess(t, testkit.ProcessOptions{Env: env, Stderr: &log},
			testkit.SelfArgs("consul-ecs", "mesh-init")...)
		testkit.Equal(t, name+": exit code", p.Wait(), 0)
		warned := strings.Contains(log.String(), `check failed: check="Consul gRPC"`)
		testkit.Equal(t, name+": warned", warned, name == "wrong")
	}
}

// serversOf returns the settings of consulServers that lead to a server.
func serversOf(c *testkit.Consul) string {
	port := func(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }
	return fmt.Sprintf(`{"hosts":"127.0.0.1","skipServerWatch":true,"defaults":{"tls":false},"http":{"port":%s,"https":false},"grpc":{"port":%s}}`,
		port(c.HTTPAddr), port(c.GRPCAddr))
}

// names returns those of a directory's files, sorted.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestMeshInitProcess covers one start of a task, as a process.
func TestMeshInitProcess(t *testing.T) {
	t.Parallel()
	c, err := testkit.StartConsul(testkit.ConsulOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Require(t).Stop)
	m := newMetadata(t)
	m.says(http.StatusOK, task("RUNNING", "RUNNING", "RUNNING"))
	dir := t.TempDir()
	env := append(m.env(),
		fmt.Sprintf(`CONSUL_ECS_CONFIG_JSON={"bootstrapDir":%q,"service":{"name":"mesh-init","port":8080}}`, dir),
		"CONSUL_HTTP_ADDR="+c.HTTPAddr)
	for range 2 { // twice: a rerun must not trip over the files of the first
		if code := consulECS(t, env, "mesh-init").Wait(); code != 0 {
			t.Fatalf("exit code %d", code)
		}
	}
	for name, mode := range map[string]os.FileMode{"envoy-bootstrap.json": 0o444, "consul-ecs": 0o755} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != mode || info.Size() == 0 {
			t.Errorf("%s: %v, %v, want mode %04o", name, info, err, mode)
		}
	}
	client, err := consulutil.NewClient(consulutil.Options{Address: c.HTTPAddr})
	if err != nil {
		t.Fatal(err)
	}
	services, err := client.Agent().Services()
	if err != nil || len(services) != 2 {
		t.Errorf("services = %v, %v, want the service and its proxy", services, err)
	}
}

// TestTERMAfterLogin: 0.6 died of it and left the token behind. Here
// the login works and the agent is out of reach.
func TestTERMAfterLogin(t *testing.T) {
	t.Parallel()
	c, admin := consulWithACLs(t)
	aws := awstest.New(t, awstest.Role{Account: "111122223333", Path: "/consul-ecs/", Name: "role"})
	createLogin(t, admin, aws)
	logins := func() int {
		tokens, _, err := admin.ACL().TokenList(nil)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, token := range tokens {
			if token.AuthMethod == "iam-ecs-service-token" {
				n++
			}
		}
		return n
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		m := newMetadata(t)
		m.says(http.StatusOK, task("RUNNING", "RUNNING", "RUNNING"))
		dir := t.TempDir()
		p := consulECS(t, append(m.env(),
			fmt.Sprintf(`CONSUL_ECS_CONFIG_JSON={"bootstrapDir":%q,"consulHTTPAddr":%q,"consulLogin":{"enabled":true}}`,
				dir, c.HTTPAddr),
			"CONSUL_HTTP_ADDR=127.0.0.1:1", "AWS_CONTAINER_CREDENTIALS_FULL_URI="+aws.CredentialsURI(),
			"AWS_ACCESS_KEY_ID=", "AWS_CONFIG_FILE=/nonexistent", "AWS_SHARED_CREDENTIALS_FILE=/nonexistent",
		), "mesh-init")
		testkit.Eventually(t, "mesh-init logged in", func() bool { return logins() == 1 })
		p.Signal(sig)
		if code := p.Wait(); code != exit.CodeUnknown {
			t.Errorf("exit code after %s = %d, want 3", sig, code)
		}
		if n := logins(); n != 0 {
			t.Errorf("%d tokens left after %s", n, sig)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) != 1 || files[0].Name() != workload.FileStatus {
			t.Errorf("files left after %s: %v, %v", sig, files, err)
		}
	}
}

func createLogin(t testing.TB, admin *api.Client, aws *awstest.AWS) {
	t.Helper()
	const name = "iam-ecs-service-token"
	_, _, err := admin.ACL().AuthMethodCreate(&api.ACLAuthMethod{Name: name, Type: "aws-iam", Config: map[string]any{
		"BoundIAMPrincipalARNs":  []string{"arn:aws:iam::111122223333:role/consul-ecs/*"},
		"EnableIAMEntityDetails": true,
		"STSEndpoint":            aws.URL, "IAMEndpoint": aws.URL,
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := admin.ACL().BindingRuleCreate(&api.ACLBindingRule{AuthMethod: name, BindType: "service",
		BindName: "web"}, nil); err != nil {
		t.Fatal(err)
	}
}

func TestGroupID(t *testing.T) {
	t.Parallel()
	for group, want := range map[string]int{"": -1, "0": 0, "1234": 1234, "root": 0} {
		if got, err := groupID(group); got != want || err != nil {
			t.Errorf("groupID(%q) = %d, %v, want %d", group, got, err, want)
		}
	}
	if _, err := groupID("-1"); err == nil {
		t.Error("-1 is no group")
	}
}

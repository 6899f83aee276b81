package subcommand

import (
	"bytes"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/clientagent"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/volume"
)

func TestClientEntrypointRefusesAWrongCall(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		env    map[string]string
		args   []string
		stderr string
	}{
		"stray argument":     {nil, []string{"agent"}, `unexpected argument "agent"`},
		"unknown flag":       {nil, []string{"-x"}, "flag provided but not defined: -x"},
		"no word for ACLs":   {nil, []string{"-acls=maybe"}, `invalid boolean value "maybe"`},
		"no time to stop in": {nil, []string{"-stop-timeout=999ms"}, "-stop-timeout 999ms: want at least 1s"},
		"no patience":        {nil, []string{"-start-timeout=0"}, "-start-timeout 0s: want more than 0"},
		"unknown group":      {nil, []string{"-file-group=no-such-group"}, "use the numeric ID"},
		"bad level":          {nil, []string{"-log-level=LOUD"}, `log level "LOUD"`},
		"bad configuration":  {map[string]string{"CONSUL_ECS_CONFIG_JSON": "{}"}, nil, "$.bootstrapDir"},
		"agentless":          {map[string]string{"CONSUL_ECS_CONFIG_JSON": `{"bootstrapDir":"/c","consulServers":{"hosts":"h"}}`}, nil, "consulServers is set: a task without a Consul client agent"},
		"not in a task": {map[string]string{"ECS_CONTAINER_METADATA_URI_V4": ""}, nil,
			"ECS_CONTAINER_METADATA_URI_V4 is not set"},
		"missing volume": {nil, []string{"-dir=/nonexistent"}, "directory /nonexistent does not exist"},
		"no servers":     {nil, []string{"-acls"}, "ACLs need -consul-http-addr"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{"ECS_CONTAINER_METADATA_URI_V4": "http://127.0.0.1:1"}
			for k, v := range tc.env {
				env[k] = v
			}
			var stdout, stderr bytes.Buffer
			app := cli.App{Name: "consul-ecs", Commands: commands()}
			code := cli.Main(app, append([]string{"client-entrypoint"}, tc.args...),
				func(k string) string { return env[k] }, strings.NewReader(""), &stdout, &stderr)
			if code != 1 || !strings.Contains(stderr.String(), tc.stderr) {
				t.Errorf("exit code %d, %s", code, stderr.String())
			}
		})
	}
}

// clientOptions returns what flags and environment make.
func clientOptions(t *testing.T, env map[string]string, args ...string) clientagent.Options {
	t.Helper()
	var f clientFlags
	fs := flag.NewFlagSet("client-entrypoint", flag.ContinueOnError)
	f.declare(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	inv := &cli.Invocation{Getenv: func(k string) string { return env[k] }, Log: hclog.NewNullLogger(),
		Stderr: &bytes.Buffer{}}
	o, err := f.agentOptions(inv)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestClientDefaults(t *testing.T) {
	t.Parallel()
	want := clientagent.Options{
		Config: &config.Config{BootstrapDir: "/consul",
			ConsulLogin: config.ConsulLogin{Method: "iam-ecs-client-token", IncludeEntity: true}},
		Agent:       clientagent.Agent{Program: "consul", Datacenter: "dc1", AutoEncrypt: true},
		FileGroup:   volume.GroupOfDir,
		StopTimeout: 30 * time.Second,
		Limit:       3 * time.Minute,
	}
	if d := cmp.Diff(want, clientOptions(t, nil)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// clientEnvironment returns what version 0.6's script had, and the rest.
func clientEnvironment() map[string]string {
	return map[string]string{
		"CONSUL_DATACENTER": "dc7", "CONSUL_PRIMARY_DATACENTER": "dc0",
		"CONSUL_RETRY_JOIN": " 10.0.0.1, provider=aws tag_key=a tag_value=b,",
		"CONSUL_PARTITION":  "team", "CONSUL_HTTP_ADDR": " env:8500\n",
		"CONSUL_CACERT_PEM": "RPC\n", "CONSUL_HTTPS_CACERT_PEM": "HTTPS\n", "CONSUL_GOSSIP_ENCRYPTION_KEY": "key\n",
		"CONSUL_AGENT_CONFIGURATION": "log_level = \"warn\"\n", "CONSUL_ECS_IGNORE_CONTAINERS": "router",
	}
}

func TestClientEnvironment(t *testing.T) {
	t.Parallel()
	got := clientOptions(t, clientEnvironment(), "-ignore-containers=agent,spare", "-compat", "-file-group=12")
	want := clientagent.Options{
		Config: &config.Config{BootstrapDir: "/consul", ConsulHTTPAddr: "env:8500",
			ConsulLogin: config.ConsulLogin{Method: "iam-ecs-client-token", IncludeEntity: true}},
		Agent: clientagent.Agent{
			Program: "consul", Datacenter: "dc7", PrimaryDatacenter: "dc0", Partition: "team",
			RetryJoin: []string{"10.0.0.1", "provider=aws tag_key=a tag_value=b"},
			CACertPEM: "RPC", AutoEncrypt: true, GossipKey: "key", ExtraHCL: "log_level = \"warn\"\n",
		},
		HTTPSCACertPEM: "HTTPS",
		Ignore:         []string{"agent", "spare", "router"},
		Compat:         true,
		FileGroup:      12,
		StopTimeout:    30 * time.Second,
		Limit:          3 * time.Minute,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestClientFlagsWin(t *testing.T) {
	t.Parallel()
	env := clientEnvironment()
	env["CONSUL_ECS_CONFIG_JSON"] = `{"bootstrapDir":"/mesh","consulHTTPAddr":"doc:8500","consulLogin":{"enabled":true,"method":"services","region":"eu-central-1"},"service":{"port":1,"partition":"doc"}}`
	got := clientOptions(t, env, "-datacenter=dc8", "-primary-datacenter=dc9", "-partition=flag", "-retry-join=a,b",
		"-retry-join=c",
		"-consul-http-addr=flag:8500", "-dir=/flag/", "-acls=false", "-auth-method=mine", "-auto-encrypt=false",
		"-bind-addr=10.0.0.9",
		"-consul-path=/bin/consul", "-agent-config-file=/a.hcl", "-agent-config-file=/b.json", "-audit-logging",
		"-enable-acl-token-replication",
		"-stop-timeout=2m", "-start-timeout=1s")
	a, l := got.Agent, got.Config.ConsulLogin
	if a.Datacenter != "dc8" || a.PrimaryDatacenter != "dc9" || a.Partition != "flag" || a.AutoEncrypt ||
		a.Address != "10.0.0.9" || a.Program != "/bin/consul" ||
		!a.AuditLogging || !a.TokenReplication || !slices.Equal(a.RetryJoin, []string{"a,b", "c"}) ||
		!slices.Equal(a.ExtraFiles, []string{"/a.hcl", "/b.json"}) {
		t.Errorf("agent = %+v", a)
	}
	if l.Enabled || l.Method != "mine" || got.Config.ConsulHTTPAddr != "flag:8500" ||
		got.Config.BootstrapDir != "/flag" || got.StopTimeout != 2*time.Minute || got.Limit != time.Second {
		t.Errorf("options = %+v, %+v", got, got.Config)
	}
}

// TestClientTakesMeshInitsConfiguration: what both need is written once. The
// auth method in it is the services'.
func TestClientTakesMeshInitsConfiguration(t *testing.T) {
	t.Parallel()
	got := clientOptions(t, map[string]string{
		"CONSUL_HTTP_ADDR": "env:8500",
		"CONSUL_ECS_CONFIG_JSON": `{"bootstrapDir":"/mesh","logLevel":"WARN","consulHTTPAddr":"doc:8500","consulCACertFile":"/mesh/ca.pem",
			"consulLogin":{"enabled":true,"method":"services","region":"eu-central-1","stsEndpoint":"https://sts.example","serverIdHeaderValue":"id","includeEntity":false},
			"gateway":{"kind":"mesh-gateway","partition":"doc"}}`,
	})
	c := got.Config
	want := config.ConsulLogin{Enabled: true, Method: "iam-ecs-client-token", Region: "eu-central-1",
		STSEndpoint: "https://sts.example", ServerIDHeaderValue: "id"}
	if d := cmp.Diff(want, c.ConsulLogin); d != "" {
		t.Errorf("login (-want +got):\n%s", d)
	}
	if c.BootstrapDir != "/mesh" || c.ConsulHTTPAddr != "doc:8500" || got.ServerCAFile() != "/mesh/ca.pem" ||
		got.Agent.Partition != "doc" {
		t.Errorf("options = %+v, %+v", got, c)
	}
}

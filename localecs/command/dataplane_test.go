package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/workload"
)

// dataplaneForEnvoy returns what replaces Envoy alone by consul-dataplane in agentless-mesh: each text, then the new one.
func dataplaneForEnvoy() []string {
	return []string{
		"envoyproxy/envoy:v1.40.0", "hashicorp/consul-dataplane:2.0.1",
		"/usr/local/bin/envoy: ${envoy}",
		"/usr/local/bin/envoy: ${envoy}\n      /usr/local/bin/consul-dataplane: ${dataplane}",
		`\"mode\":\"direct\",`, "",
		`"name": "sidecar-proxy"`, `"name": "consul-dataplane"`,
		`"envoy",
        "--config-path",
        "/consul/envoy-bootstrap.json",
        "--log-level",
        "warning",
        "--disable-hot-restart",
        "--concurrency",
        "2",
        "--drain-time-s",
        "30",
        "--drain-strategy",
        "immediate"`, `"consul-dataplane", "-config-file", "/consul/consul-dataplane.json"`,
	}
}

// agentless-mesh with consul-dataplane in place of Envoy alone, in the container and by the user of version 0.10: the
// one that CONSUL_DATAPLANE names or PATH has, else a stand-in. No request, token or service is lost.
func TestEndToEndConsulDataplane(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	program := consulDataplane(t)
	dir := derive(t, "agentless-mesh", "", append(dataplaneForEnvoy(), `"user": "5995:5996"`, `"user": "5995"`)...)
	code, report, events := runReport(t, append(programs(t), "-var", "dataplane="+program), dir)
	if code != 0 || report.Failed != 0 || report.Answered < 200 || len(report.Failures) != 0 || len(report.Left) != 0 {
		t.Errorf("exit %d, report %+v, want no failure, nothing left and 200 requests", code, report)
	}
	wantEvents(t, events, []event{
		{Kind: "status", Task: "api-1", Container: "consul-dataplane", Text: "STOPPED (exit code 0)"},
		{Kind: "cleared", Task: "api-1", Text: "nothing left of the task"},
		{Kind: "cleared", Task: "api-3", Text: "nothing left of the task"},
	})
}

// Task definitions of hashicorp/consul-ecs 0.10 run as they are, with another image.
func TestEndToEndTaskDefinitionsOfConsulECS010(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(testkit.Root(), "localecs", "command", "testdata", "agentless-0.10")
	code, report, _ := runReport(t, append(programs(t), "-var", "dataplane="+consulDataplane(t)), dir)
	if code != 0 || len(report.Failures) != 0 || len(report.Left) != 0 {
		t.Errorf("exit %d, failures %v, left %v", code, report.Failures, report.Left)
	}
}

// consulDataplane returns the program that CONSUL_DATAPLANE names or PATH has, else the stand-in.
func consulDataplane(t testing.TB) string {
	t.Helper()
	program := os.Getenv("CONSUL_DATAPLANE")
	if program == "" {
		program, _ = exec.LookPath("consul-dataplane")
	}
	if program == "" {
		t.Log("consul-dataplane not found: it is played by a stand-in; CONSUL_DATAPLANE names a real one")
		program = os.Args[0]
	}
	program, err := filepath.Abs(program)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// dataplaneFile has the keys that consul-dataplane 2.0.1 needs of its file. tlsServerName is the one that it ignores.
type dataplaneFile struct {
	Consul struct {
		Addresses           string
		GRPCPort            int
		ServerWatchDisabled bool
		TLS                 struct {
			Disabled      bool
			TLSServerName string
		}
		Credentials struct {
			Type   string
			Static struct{ Token string }
		}
	}
	Proxy     struct{ NodeName, ID, Namespace, Partition string }
	XDSServer struct{ BindAddress string }
	Envoy     struct {
		ReadyBindAddress string
		ReadyBindPort    int
	}
	Logging struct{ LogLevel string }
}

// dataplaneStandIn does what consul-dataplane does, as far as a scenario needs it: it serves Envoy by nothing but its
// file. Envoy and the way to the servers are those of envoy-entrypoint in direct mode.
func dataplaneStandIn(args []string) int {
	if err := startDataplane(args); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1
}

func startDataplane(args []string) error {
	if len(args) != 2 || args[0] != "-config-file" || filepath.Ext(args[1]) != ".json" {
		return fmt.Errorf("arguments %q", args)
	}
	text, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	var f dataplaneFile
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil {
		return err
	}
	if f.Consul.Credentials.Type != "static" || !f.Consul.TLS.Disabled || f.XDSServer.BindAddress != "127.0.0.1" {
		return fmt.Errorf("file %s", text)
	}
	tls := false
	relay, err := bootstrap.Relay{
		Servers: config.ConsulServers{
			Hosts: f.Consul.Addresses, SkipServerWatch: f.Consul.ServerWatchDisabled,
			GRPC: config.ServerGRPC{Port: f.Consul.GRPCPort, TLS: &tls},
		},
		Token: f.Consul.Credentials.Static.Token,
	}.JSON()
	if err != nil {
		return err
	}
	envoy, err := bootstrap.Generate(bootstrap.Params{
		Proxy:   bootstrap.Proxy{Kind: "connect-proxy", Service: f.Proxy.ID, Destination: f.Proxy.ID, Namespace: f.Proxy.Namespace, Partition: f.Proxy.Partition},
		ProxyID: f.Proxy.ID, NodeName: f.Proxy.NodeName,
		GRPC:      bootstrap.GRPC{Address: net.JoinHostPort(f.XDSServer.BindAddress, strconv.Itoa(workload.AgentGRPCPort))},
		ReadyBind: net.JoinHostPort(f.Envoy.ReadyBindAddress, strconv.Itoa(f.Envoy.ReadyBindPort)),
	})
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("/dev/shm", "") // the root file system may be read-only
	if err != nil {
		return err
	}
	path := filepath.Join(dir, workload.FileBootstrap)
	err = cmp.Or(os.WriteFile(path, envoy, 0o600), os.WriteFile(filepath.Join(dir, workload.FileRelay), relay, 0o600))
	if err != nil {
		return err
	}
	return syscall.Exec("/consul/consul-ecs", []string{"consul-ecs", "envoy-entrypoint", "-start-timeout", "0", "envoy", "--config-path", path}, os.Environ())
}

package subcommand

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

// TestStaticTokenIsOfTasksWithoutAnAgent: with an agent, mesh-init logs in all the same.
func TestStaticTokenIsOfTasksWithoutAnAgent(t *testing.T) {
	t.Parallel()
	env := map[string]string{"CONSUL_HTTP_TOKEN": "secret"}
	inv := &cli.Invocation{Getenv: func(k string) string { return env[k] }, Log: hclog.NewNullLogger()}
	for agentless, cfg := range map[bool]*config.Config{false: {},
		true: {ConsulServers: &config.ConsulServers{Hosts: "127.0.0.1"}}} {
		if a, err := newConsulAccess(inv, cfg); err != nil || a.static != agentless {
			t.Errorf("agentless %t: static %t, %v", agentless, a.static, err)
		}
	}
}

func TestHealthSyncRefusesAWrongCall(t *testing.T) {
	t.Parallel()
	const valid = `{"bootstrapDir":"/consul","proxy":{}}`
	for name, tc := range map[string]struct {
		config, metadata string
		args             []string
		stderr           string
	}{
		"stray argument": {valid, "http://127.0.0.1:1", []string{"now"}, `unexpected argument "now"`},
		"unknown flag": {valid, "http://127.0.0.1:1", []string{"-log-level=DEBUG"},
			"flag provided but not defined: -log-level"},
		"no time to stop in": {valid, "http://127.0.0.1:1", []string{"-stop-timeout=999ms"},
			"-stop-timeout 999ms: want at least 1s"},
		"no configuration":  {"", "http://127.0.0.1:1", nil, "invalid config: "},
		"bad configuration": {"{}", "http://127.0.0.1:1", nil, "$.bootstrapDir"},
		"not in a task":     {valid, "", nil, "ECS_CONTAINER_METADATA_URI_V4 is not set"},
		"metadata without scheme": {valid, "169.254.170.2/v4", nil,
			`ECS_CONTAINER_METADATA_URI_V4 is "169.254.170.2/v4"`},
		"agentless, port in the host": {`{"bootstrapDir":"/c","consulServers":{"hosts":"consul.example:8501"}}`,
			"http://127.0.0.1:1", nil, `"consul.example:8501" has a port: write "consul.example"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{"CONSUL_ECS_CONFIG_JSON": tc.config, "ECS_CONTAINER_METADATA_URI_V4": tc.metadata}
			var stdout, stderr bytes.Buffer
			app := cli.App{Name: "consul-ecs", Commands: map[string]cli.Command{"health-sync": healthSyncCommand()}}
			code := cli.Main(app, append([]string{"health-sync"}, tc.args...), func(k string) string { return env[k] },
				strings.NewReader(""), &stdout, &stderr)
			if code != 1 || !strings.Contains(stderr.String(), tc.stderr) {
				t.Errorf("exit code %d, %s", code, stderr.String())
			}
		})
	}
}

// syncedTask is a task whose container app is HEALTHY and has a check in a
// Consul of its own.
type syncedTask struct {
	*metadata
	consul *testkit.Consul
	doc    string
	// status is the check's in Consul.
	status func() string
}

func newSyncedTask(t *testing.T, c *testkit.Consul, service string) syncedTask {
	t.Helper()
	client, err := consulutil.NewClient(consulutil.Options{Address: c.HTTPAddr})
	if err != nil {
		t.Fatal(err)
	}
	doc := fmt.Sprintf(`{"bootstrapDir":%q,"service":{"name":%q,"port":8080},"proxy":{},"healthSyncContainers":["app"]}`, t.TempDir(), service)
	cfg, _, err := config.Parse([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	known, err := workload.ParseTask([]byte(healthyTask))
	if err != nil {
		t.Fatal(err)
	}
	w, err := workload.New(cfg, known, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := registrar.New(cfg, client).Register(t.Context(), "", w); err != nil {
		t.Fatal(err)
	}
	m := newMetadata(t)
	m.says(200, healthyTask)
	return syncedTask{metadata: m, consul: c, doc: doc, status: func() string {
		checks, err := client.Agent().Checks()
		if err != nil {
			t.Fatal(err)
		}
		return checks[workload.CheckID(w.ID, "app")].Status
	}}
}

// healthyTask is a task that runs.
var healthyTask = strings.Replace(task("RUNNING", "RUNNING", "STOPPED"), `"Name":"app"`,
	`"Health":{"status":"HEALTHY"},"Name":"app"`, 1)

// healthSync starts health-sync and waits until the check passes.
func (s syncedTask) healthSync(t *testing.T) *testkit.Process {
	t.Helper()
	env := append(s.env(), "CONSUL_HTTP_ADDR="+s.consul.HTTPAddr, "CONSUL_ECS_CONFIG_JSON="+s.doc)
	p := consulECS(t, env, "health-sync", "-stop-timeout=60s")
	testkit.Eventually(t, "the check passes", func() bool { return s.status() == "passing" })
	return p
}

func TestHealthSyncProcess(t *testing.T) {
	t.Parallel()
	c, err := testkit.StartConsul(testkit.ConsulOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Require(t).Stop)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		s := newSyncedTask(t, c, fmt.Sprintf("signal-%d", sig))
		p := s.healthSync(t)
		p.Signal(sig)
		if code := p.Wait(); code != 0 || s.status() != "critical" {
			t.Errorf("%s: exit code %d, check left %s", sig, code, s.status())
		}
	}
}

// TestHealthSyncAwaitsTheFilesOfTheConsulClient: consul-client writes the CA certificates
// that CONSUL_CACERT names, and starts beside health-sync.
func TestHealthSyncAwaitsTheFilesOfTheConsulClient(t *testing.T) {
	t.Parallel()
	c, err := testkit.StartConsul(testkit.ConsulOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Require(t).Stop)
	_, ca := certificates(t)
	file := filepath.Join(t.TempDir(), "consul-ca-cert.pem")
	for _, service := range []string{"never", "late"} {
		s, log := newSyncedTask(t, c, service), &testkit.Log{}
		env := append(s.env(), "CONSUL_HTTP_ADDR="+s.consul.HTTPAddr, "CONSUL_ECS_CONFIG_JSON="+s.doc,
			"CONSUL_CACERT="+file)
		p := testkit.StartProcess(t, testkit.ProcessOptions{Env: env, Stderr: log},
			testkit.SelfArgs("consul-ecs", "health-sync")...)
		testkit.Eventually(t, "health-sync awaits the file",
			func() bool { return strings.Contains(log.String(), "prepare Consul client failed, retrying") })
		if service == "late" {
			if err := os.WriteFile(file, []byte(ca), 0o600); err != nil {
				t.Fatal(err)
			}
			testkit.Eventually(t, "the check passes", func() bool { return s.status() == "passing" })
		}
		p.Signal(syscall.SIGTERM)
		if code := p.Wait(); code != 0 || s.status() != "critical" {
			t.Errorf("%s: exit code %d, check left %s\n%s", service, code, s.status(), log)
		}
	}
}

// TestTrafficEndsBeforeTheApplication: all containers of the task get
// TERM at once. The check turns critical while application and Envoy still
// serve, so that peers have gone elsewhere when the application gets its TERM,
// and Envoy comes last. 0.6 promised no order.
func TestTrafficEndsBeforeTheApplication(t *testing.T) {
	t.Parallel()
	c, err := testkit.StartConsul(testkit.ConsulOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Require(t).Stop)
	s := newSyncedTask(t, c, "web")
	app := wrapApp(t, []string{"-shutdown-delay", "1h"}, worker()...)
	app.Expect("ready")
	envoy := wrapEnvoy(t, s.env(), nil, worker()...)
	envoy.Expect("ready")
	health := s.healthSync(t)

	s.says(200, running) // desired STOPPED, still running
	for _, p := range []*testkit.Process{app, envoy, health} {
		p.Signal(syscall.SIGTERM)
	}
	exits(t, health, 0)
	if got := s.status(); got != "critical" {
		t.Errorf("check is %s", got)
	}
	s.reads(t, 3)
	for name, p := range map[string]*testkit.Process{"application": app, "envoy": envoy} {
		if line, ok := p.Try(); ok || !p.Running() {
			t.Errorf("%s did not go on serving: %q", name, line)
		}
	}
	// Instead of an hour. A TERM that comes before the first is taken merges with it, and one
	// that comes when the child has ended ends app-entrypoint.
	var sent time.Time
	testkit.Eventually(t, "another TERM ends the application", func() bool {
		if time.Since(sent) > 5*time.Second {
			app.Signal(syscall.SIGTERM)
			sent = time.Now()
		}
		line, ok := app.Try()
		return ok && line == "got terminated"
	})
	exits(t, app, 55)
	s.says(200, stopped)
	exits(t, envoy, 55)
}

package subcommand

import (
	"bytes"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

func TestHealthSyncRefusesAWrongCall(t *testing.T) {
	t.Parallel()
	const valid = `{"bootstrapDir":"/consul","proxy":{}}`
	for name, tc := range map[string]struct {
		config, metadata string
		args             []string
		stderr           string
	}{
		"stray argument":          {valid, "http://127.0.0.1:1", []string{"now"}, `unexpected argument "now"`},
		"unknown flag":            {valid, "http://127.0.0.1:1", []string{"-log-level=DEBUG"}, "flag provided but not defined: -log-level"},
		"no time to stop in":      {valid, "http://127.0.0.1:1", []string{"-stop-timeout=999ms"}, "-stop-timeout 999ms: want at least 1s"},
		"no configuration":        {"", "http://127.0.0.1:1", nil, "invalid config: "},
		"bad configuration":       {"{}", "http://127.0.0.1:1", nil, "$.bootstrapDir"},
		"not in a task":           {valid, "", nil, "ECS_CONTAINER_METADATA_URI_V4 is not set"},
		"metadata without scheme": {valid, "169.254.170.2/v4", nil, `ECS_CONTAINER_METADATA_URI_V4 is "169.254.170.2/v4"`},
		"agentless, nothing else": {`{"consulServers":{"hosts":"h"}}`, "", nil, "consulServers is set"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{"CONSUL_ECS_CONFIG_JSON": tc.config, "ECS_CONTAINER_METADATA_URI_V4": tc.metadata}
			var stdout, stderr bytes.Buffer
			app := cli.App{Name: "consul-ecs", Commands: map[string]cli.Command{"health-sync": healthSyncCommand()}}
			code := cli.Main(app, append([]string{"health-sync"}, tc.args...), func(k string) string { return env[k] }, strings.NewReader(""), &stdout, &stderr)
			if code != 1 || !strings.Contains(stderr.String(), tc.stderr) {
				t.Errorf("exit code %d, %s", code, stderr.String())
			}
		})
	}
}

func TestHealthSyncProcess(t *testing.T) {
	t.Parallel()
	c, err := testkit.StartConsul(testkit.ConsulOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.Require(t)
	t.Cleanup(c.Stop)
	client, err := consulutil.NewClient(consulutil.Options{Address: c.HTTPAddr})
	if err != nil {
		t.Fatal(err)
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		name := fmt.Sprintf("signal-%d", sig)
		doc := fmt.Sprintf(`{"bootstrapDir":%q,"service":{"name":%q,"port":8080},"proxy":{},"healthSyncContainers":["app"]}`, t.TempDir(), name)
		cfg, _, err := config.Parse([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		healthy := strings.Replace(task("RUNNING", "RUNNING", "STOPPED"), `"Name":"app"`, `"Health":{"status":"HEALTHY"},"Name":"app"`, 1)
		known, err := workload.ParseTask([]byte(healthy))
		if err != nil {
			t.Fatal(err)
		}
		w, err := workload.New(cfg, known)
		if err != nil {
			t.Fatal(err)
		}
		reg, err := registrar.New(cfg, client)
		if err != nil {
			t.Fatal(err)
		}
		if err := reg.Register(t.Context(), "", w); err != nil {
			t.Fatal(err)
		}
		status := func() string {
			checks, err := client.Agent().Checks()
			if err != nil {
				t.Fatal(err)
			}
			return checks[workload.CheckID(w.ID, "app")].Status
		}

		m := newMetadata(t)
		m.says(200, healthy)
		p := consulECS(t, append(m.env(), "CONSUL_HTTP_ADDR="+c.HTTPAddr, "CONSUL_ECS_CONFIG_JSON="+doc), "health-sync", "-stop-timeout=10s")
		testkit.Eventually(t, "the check passes", func() bool { return status() == "passing" })
		p.Signal(sig)
		if code := p.Wait(); code != 0 || status() != "critical" {
			t.Errorf("%s: exit code %d, check left %s", name, code, status())
		}
	}
}

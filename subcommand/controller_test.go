package subcommand

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/controller"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// agentlessWorld makes a world of tasks without agents.
func agentlessWorld(t *testing.T, o testkit.ConsulOptions) *clusterWorld {
	t.Helper()
	w := newClusterWorldOf(t, o)
	w.methods, w.rules = []string{"iam-ecs-service-token"}, 4
	return w
}

// agentlessEnv returns the environment of a controller in a task of the cluster.
func (w *clusterWorld) agentlessEnv() []string {
	w.t.Helper()
	m := newMetadata(w.t)
	m.says(http.StatusOK,
		fmt.Sprintf(`{"Name":"consul-ecs-controller","Cluster":%q,"TaskARN":%q,"Containers":[{"Name":"consul-ecs-controller","Networks":[{"IPv4Addresses":["10.0.0.7"]}]}]}`,
			w.arn, strings.Replace(w.arn, ":cluster/", ":task/", 1)+"/"+strings.Repeat("c", 32)))
	host, consul, err := net.SplitHostPort(w.HTTPAddr)
	if err != nil {
		w.t.Fatal(err)
	}
	doc := fmt.Sprintf(`{"bootstrapDir":"/consul","consulServers":{"hosts":%q,"http":{"port":%s,"https":false}}}`, host,
		consul)
	return append(append(w.env(), m.env()...), "CONSUL_HTTP_ADDR=http://192.0.2.1:1", "CONSUL_ECS_CONFIG_JSON="+doc)
}

// agentless starts a controller as a process whose log is in the file.
func (w *clusterWorld) agentless(args ...string) (p *testkit.Process, log string) {
	w.t.Helper()
	log = filepath.Join(w.t.TempDir(), "log")
	w.t.Cleanup(func() {
		if w.t.Failed() {
			w.t.Logf("the controller's log:\n%s", readLog(w.t, log))
		}
	})
	line := testkit.SelfArgs("consul-ecs", append([]string{"controller", "-interval", "1s", "-aws-rate", "50"},
		args...)...)
	return testkit.StartProcess(w.t, testkit.ProcessOptions{Env: w.agentlessEnv()},
		append([]string{"sh", "-c", `exec "$@" 2>"$0"`, log}, line...)...), log
}

// agentlessLeader returns the holder of the lock of the controllers of tasks without agents.
func (w *clusterWorld) agentlessLeader() string {
	w.t.Helper()
	pair, _, err := w.admin.KV().Get(controller.LockKey(w.arn, "", "agentless"), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if pair == nil || pair.Session == "" {
		return ""
	}
	return string(pair.Value)
}

func readLog(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestController: the whole command sets Consul up so that tasks can log in, registers
// the cluster's node, removes what a dead task left there, and keeps everything else.
func TestController(t *testing.T) {
	t.Parallel()
	w := agentlessWorld(t, testkit.ConsulOptions{ACL: true})
	ports, err := testkit.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", port(ports[0]))
	p, log := w.agentless("-metrics-addr", address, "-anonymous-read")
	sts := awstest.New(t, awstest.Role{Account: "123456789012", Path: "/consul-ecs/", Name: "web-role",
		Tags: map[string]string{"consul.hashicorp.com.service-name": "web"}})
	w.operator(sts)
	var node *api.CatalogNode
	testkit.Eventually(t, "the cluster's node is registered", func() bool {
		node, _, err = w.admin.Catalog().Node(w.arn, nil)
		return err == nil && node != nil
	})
	if node.Node.Address != "10.0.0.7" || node.Node.Meta["synthetic-node"] != "true" {
		t.Errorf("node %+v", node.Node)
	}
	ids := w.run(3)
	w.leaveOn(w.arn, ids...)
	dead, alive := w.logIn(sts, ids[0]), w.logIn(sts, ids[1])
	w.ecs.Stop(ids[0])
	live := slices.Sorted(slices.Values(ids[1:]))
	testkit.Eventually(t, "the dead task's services are gone", func() bool { return slices.Equal(w.services(), live) })
	testkit.Eventually(t, "its token is gone", func() bool { return !w.knows(dead[0]) })
	if !w.knows(alive[0]) {
		t.Error("a live task has lost its token")
	}
	figures := []string{"leader 1", "tasks 2", "tokens 1", "services 4",
		`deletions_total{kind="token",reason="stopped"} 1`, `deletions_total{kind="service",reason="stopped"} 2`,
		"consul_errors_total 0"}
	testkit.Eventually(t, fmt.Sprintf("the metrics show %q", figures), func() bool {
		text := body(t, "http://"+address+"/metrics", http.StatusOK)
		return !slices.ContainsFunc(figures, func(figure string) bool {
			return !strings.Contains(text, "consul_ecs_controller_"+figure+"\n")
		})
	})
	if got, want := w.agentlessLeader(), strings.Replace(w.arn, ":cluster/", ":task/", 1)+"/"+strings.Repeat("c",
		32); got != want {
		t.Errorf("%q leads, want %q", got, want)
	}
	p.Signal(syscall.SIGTERM)
	exits(t, p, 0)
	if got := w.agentlessLeader(); got != "" {
		t.Errorf("%q leads after the end", got)
	}
	text := readLog(t, log)
	for line, want := range map[string]int{"configuration warning": 0, "Successfully configured the anonymous token": 1,
		"token deleted successfully": 1, "deregistered a dead task's service": 2} {
		if got := strings.Count(text, line); got != want {
			t.Errorf("%d lines %q, want %d, in\n%s", got, line, want, text)
		}
	}
}

// TestControllerRestoresTheNode: a node that an operator removed, or that a restored
// snapshot does not have, is there again after a pass.
func TestControllerRestoresTheNode(t *testing.T) {
	t.Parallel()
	w := agentlessWorld(t, testkit.ConsulOptions{ACL: true})
	w.run(1)
	p, _ := w.agentless()
	there := func() bool {
		node, _, err := w.admin.Catalog().Node(w.arn, nil)
		return err == nil && node != nil
	}
	testkit.Eventually(t, "the cluster's node is registered", there)
	if _, err := w.admin.Catalog().Deregister(&api.CatalogDeregistration{Node: w.arn}, nil); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the node is registered again", there)
	p.Signal(syscall.SIGTERM)
	exits(t, p, 0)
}

// TestControllerWithoutACLs: services of dead tasks are removed all the same.
func TestControllerWithoutACLs(t *testing.T) {
	t.Parallel()
	w := agentlessWorld(t, testkit.ConsulOptions{})
	ids := w.run(2)
	w.leaveOn(w.arn, ids...)
	p, log := w.agentless()
	w.ecs.Stop(ids[0])
	testkit.Eventually(t, "the dead task's services are gone",
		func() bool { return slices.Equal(w.services(), ids[1:]) })
	testkit.Eventually(t, "the log explains it", func() bool {
		return strings.Contains(readLog(t, log),
			"ACLs are disabled in Consul: no auth method is created, and only services of dead tasks are removed")
	})
	p.Signal(syscall.SIGTERM)
	exits(t, p, 0)
}

// TestControllerStartsBeforeConsul: in a first deployment the servers may come later.
func TestControllerStartsBeforeConsul(t *testing.T) {
	t.Parallel()
	w := agentlessWorld(t, testkit.ConsulOptions{ACL: true})
	w.Stop()
	p, log := w.agentless()
	testkit.Eventually(t, "it tries again", func() bool {
		_, err := os.Stat(log)
		return err == nil && strings.Contains(readLog(t, log), "leadership failed, retrying")
	})
	if !p.Running() {
		t.Errorf("it has ended:\n%s", readLog(t, log))
	}
	endsSoon(t, p)
}

// TestBothControllersOfACluster: while the cluster's tasks change the generation, each
// has its own leader, and gc waits for none of them.
func TestBothControllersOfACluster(t *testing.T) {
	t.Parallel()
	w := agentlessWorld(t, testkit.ConsulOptions{ACL: true})
	w.run(1) // makes the cluster
	agents := w.controller()
	testkit.Eventually(t, "acl-controller leads", func() bool { return w.leads(agents) })
	p, _ := w.agentless()
	testkit.Eventually(t, "controller leads", func() bool { return w.agentlessLeader() != "" })
	for _, method := range []string{"iam-ecs-client-token", "iam-ecs-service-token"} {
		testkit.Eventually(t, method+" is there", func() bool {
			m, _, err := w.admin.ACL().AuthMethodRead(method, nil)
			return err == nil && m != nil
		})
	}
	agents.Signal(syscall.SIGTERM)
	exits(t, agents, 0)
	code, out, stderr := w.gc(nil, "-apply", "-cluster", w.arn)
	if code != 2 || out != "" || !strings.Contains(stderr, "has a controller: "+w.agentlessLeader()+" leads") {
		t.Errorf("gc: code %d, stdout %q, stderr %q", code, out, stderr)
	}
	if got := w.leader(); got != "" {
		t.Errorf("gc has left the lock to %q", got)
	}
	testkit.Eventually(t, "each controller has its record of trust", func() bool {
		rules, _, err := w.admin.ACL().BindingRuleList("iam-ecs-service-token", nil)
		records := slices.DeleteFunc(rules, func(r *api.ACLBindingRule) bool {
			return !strings.HasPrefix(r.Description, "Record of")
		})
		return err == nil && len(records) == 2
	})
	p.Signal(syscall.SIGTERM)
	exits(t, p, 0)
}

// TestControllerMistakes: exit code 1, before any request.
func TestControllerMistakes(t *testing.T) {
	t.Parallel()
	const servers = `"bootstrapDir":"/consul","consulServers":{"hosts":"127.0.0.1"}`
	for name, tt := range map[string]struct {
		config, metadata string
		args             []string
		want             string
	}{
		"argument":    {`{` + servers + `}`, "http://127.0.0.1:1", []string{"x"}, `unexpected argument "x"`},
		"no document": {"", "http://127.0.0.1:1", nil, "CONSUL_ECS_CONFIG_JSON"},
		"agents": {`{"bootstrapDir":"/consul","service":{"port":1}}`, "http://127.0.0.1:1", nil,
			"CONSUL_ECS_CONFIG_JSON has no consulServers: add it, or run acl-controller"},
		"partition": {`{` + servers + `,"controller":{"partition":"team"}}`, "http://127.0.0.1:1", nil,
			"controller.partition"},
		"whole account": {`{` + servers + `,"controller":{"iamRolePath":"/"}}`, "http://127.0.0.1:1", nil,
			`controller.iamRolePath: role path "/": it would trust every role of the account`},
		"no cluster": {`{` + servers + `}`, "", nil, "ECS_CONTAINER_METADATA_URI_V4 is not set"},
		"flag, too":  {`{}`, "http://127.0.0.1:1", []string{"-interval", "1ms"}, "-interval 1ms: want 1s to 1h"},
		"token TTL": {`{` + servers + `}`, "http://127.0.0.1:1", []string{"-token-ttl", "25h"},
			"-token-ttl: token TTL 25h0m0s: want 1m0s to 24h0m0s"},
		"force alone": {`{` + servers + `}`, "http://127.0.0.1:1", []string{"-token-ttl-force"},
			"-token-ttl-force has no effect without -token-ttl"},
		"document, too": {`{}`, "http://127.0.0.1:1", []string{"-interval", "1ms"}, "$.bootstrapDir"},
		"interval": {`{` + servers + `}`, "http://127.0.0.1:1", []string{"-interval", "1ms"},
			"-interval 1ms: want 1s to 1h"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
			defer cancel()
			line := testkit.SelfArgs("consul-ecs", append([]string{"controller"}, tt.args...)...)
			cmd := exec.CommandContext(ctx, line[0], line[1:]...)
			cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "CONSUL_ECS_CONFIG_JSON="+tt.config,
				"ECS_CONTAINER_METADATA_URI_V4="+tt.metadata)
			out, err := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(out), tt.want) {
				t.Errorf("exit code %d, %v, want %q in\n%s", code, cmp.Or(err, ctx.Err()), tt.want, out)
			}
		})
	}
}

package command

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// onHost makes a task definition or scenario of hello-mesh fit for host
// networking: loopback addresses.
func onHost(_, text string) string {
	return strings.NewReplacer(
		"10.42.0.", "127.42.0.",
		`"127.0.0.1:9090"`, `"0.0.0.0:9090"`, // the application, for callers outside of the mesh
	).Replace(text)
}

// A mesh task on a host without network namespaces: real Consul, real Envoy, the
// host's own network, and no right to change it.
func TestEndToEndMeshTaskOnTheHostsNetwork(t *testing.T) {
	t.Parallel()
	if !testkit.OwnNetwork(t) {
		return
	}
	scene := variant(t, `
- start: [api-1]
- await: {service: api, passing: 1, within: 60s}
- mtls: {task: api-1, port: 20000, service: api}
- traffic: {task: api-1, port: 9090, rate: 50}
- await: {requests: 200, within: 120s}
- endTraffic: true
- post: {task: api-1, url: "http://127.0.0.1:9090/health/fail"}
- await: {task: api-1, container: api, status: critical, within: 60s}
- stop: [api-1]
`, onHost)
	programs := programs(t)
	dir := t.TempDir()
	t.Cleanup(func() { showLogs(t, dir) })
	got := call(t, append(append([]string{"run", "-network", "host", "-dir", dir}, programs...), scene)...)
	if got.code != 0 || !strings.Contains(got.stdout, "hello-mesh: all checks passed") {
		t.Errorf("exit %d\n%s\n%s", got.code, got.stdout, got.stderr)
	}
	for _, want := range []string{"tasks share 127.0.0.1 and its ports", "there is no eth1", "169.254.170.2 does not exist", "tasks are not isolated"} {
		if strings.Count(got.stderr, "localecs run: warning: with host networking ") != 4 || strings.Count(got.stderr, want) != 1 {
			t.Errorf("want one warning %q:\n%s", want, got.stderr)
		}
	}
	// The second api has the ports of the first.
	scene = variant(t, "- start: [api-1, api-2]\n", onHost)
	got = call(t, append(append([]string{"run", "-network", "host", "-dir", t.TempDir()}, programs...), scene)...)
	const want = "step 1: start api-2: port 9090/tcp of container api of task api-2 is not available: container api of task api-1 has it"
	if got.code != 2 || !strings.Contains(got.stdout, want) {
		t.Errorf("exit %d, want 2 and %q\n%s\n%s", got.code, want, got.stdout, got.stderr)
	}
}

// The last resort: no root, and no network of the user's own.
func TestRootlessOnTheHostsNetwork(t *testing.T) {
	t.Parallel()
	if !testkit.OwnNetwork(t) {
		return
	}
	d := newDesk(t)
	scenario := strings.ReplaceAll(fmt.Sprintf(pairScenario, 5), "10.42.0.", "127.42.0.")
	lines := finish(t, d.runOn(t, "host", "", scenario, strings.Replace(pair, " /sys/kernel", "", 1)))
	said := strings.Join(reasons(lines), "\n")
	for _, want := range []string{"with host networking tasks share 127.0.0.1", "/sys is empty", "one user for all containers"} {
		if strings.Count(said, want) != 1 {
			t.Errorf("want one warning %q in\n%s", want, said)
		}
	}
	// The port of a name server is for privileged users.
	dns := slices.IndexFunc(lines, func(l line) bool { return strings.Contains(l.raw, "task names do not resolve") })
	if dns < 0 || !strings.Contains(lines[dns].raw, "127.42.0.2:53: bind: permission denied") {
		t.Errorf("no warning about names in %+v", lines)
	}
}

func TestNetworkRefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		network, subnet, want string
	}{
		{"bridge", "10.42.0.0/24", `invalid value "bridge" for flag -network: want awsvpc or host`},
		{"host", "10.42.0.0/24", "write subnet 127.42.0.0/24"},
		{"awsvpc", "127.42.0.0/24", "loopback addresses are for -network host"},
	} {
		scene := variant(t, "- start: [web]\n", func(_, text string) string { return strings.Replace(text, "10.42.0.0/24", c.subnet, 1) })
		got := call(t, "run", "-network", c.network, "-dir", t.TempDir(), scene)
		if got.code != 1 || !strings.Contains(got.stderr, c.want) {
			t.Errorf("-network %s with %s: exit %d, want 1 and %q\n%s", c.network, c.subnet, got.code, c.want, got.stderr)
		}
	}
}

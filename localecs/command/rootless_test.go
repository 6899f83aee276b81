package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// pair is a task of two containers with a volume: a root that writes, and
// another user who reads it and serves once his health check has run.
const pair = `{
  "family": "pair", "networkMode": "awsvpc",
  "volumes": [{"name": "data"}],
  "containerDefinitions": [
    {"name": "writer", "image": "tools", "essential": false, "memory": 64,
     "mountPoints": [{"sourceVolume": "data", "containerPath": "/data"}],
     "entryPoint": ["/bin/sh", "-ec"],
     "command": ["id -u; id -g; chown 5995:5996 /data 2>/dev/null || echo no such owner; chmod 0770 /data; umask 077; echo secret > /data/private; echo hello > /data/public; chmod 0644 /data/public; stat -c '%n %u:%g %a' /data /data/*"]},
    {"name": "reader", "image": "tools", "user": "5995:5996", "memory": 64,
     "dependsOn": [{"containerName": "writer", "condition": "SUCCESS"}],
     "mountPoints": [{"sourceVolume": "data", "containerPath": "/data"}],
     "linuxParameters": {"initProcessEnabled": true},
     "healthCheck": {"command": ["CMD-SHELL", "id -u > /data/probe.part && mv /data/probe.part /data/probe"], "interval": 5, "timeout": 60},
     "entryPoint": ["/bin/sh", "-ec"],
     "command": ["id -u; id -g; cat /data/public; cat /data/private 2>/dev/null || echo private; echo x > /data/mine; stat -c '%n %u:%g %a' /data/mine; grep CapBnd /proc/self/status; ls -d /proc/sys /sys/kernel; until [ -e /data/probe ]; do sleep 0.1; done; cat /data/probe; exec /hello api 0.0.0.0:8080"]}
  ]
}`

const pairScenario = `name: pair
timeScale: 5
gatePeriod: 0s
subnet: 10.42.0.0/24
images:
  consul: {programs: {/bin/consul: "${consul}"}}
  tools:
    programs: {/bin/sh: /bin/sh, /bin/id: /usr/bin/id, /bin/cat: /bin/cat, /bin/stat: /usr/bin/stat, /bin/chmod: /bin/chmod, /bin/grep: /bin/grep, /bin/ls: /bin/ls, /bin/mv: /bin/mv, /bin/chown: /bin/chown, /bin/sleep: /bin/sleep, /hello: "${bin}/hello"}
consul: {image: consul, datacenter: dc1}
tasks: {pair: pair.json}
steps:
- start: [pair]
- traffic: {task: pair, port: 8080, rate: 50}
- await: {requests: %d, within: 600s}
- endTraffic: true
- stop: [pair]
checks: {failedRequests: 0}
`

// desk is a directory that a user may read, with all that a run needs, and the one below it that the user may write to.
type desk struct {
	dir, state string
}

func newDesk(t *testing.T) desk {
	t.Helper()
	d := desk{dir: testkit.PublicDir(t)}
	for _, name := range []string{"localecs", "hello"} {
		testkit.PublicCopy(t, d.dir, filepath.Join(testkit.Programs(t), name))
	}
	testkit.PublicCopy(t, d.dir, testkit.RequireBinary(t, "consul"))
	d.state = filepath.Join(d.dir, "state")
	if err := os.Mkdir(d.state, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(d.state, testkit.UserID, testkit.UserID); err != nil {
		testkit.Missing(t, "becoming another user needs root")
	}
	t.Cleanup(func() { showLogs(t, d.state) })
	return d
}

// withHelpers puts newuidmap and newgidmap where localecs finds them.
func (d desk) withHelpers(t *testing.T) {
	t.Helper()
	for _, name := range []string{"newuidmap", "newgidmap"} {
		testkit.PublicCopy(t, d.dir, testkit.RequireBinary(t, name))
	}
}

// run starts localecs as a user with some sub-IDs on a scenario of so many requests.
func (d desk) run(t *testing.T, subIDs string, requests int) *testkit.Process {
	t.Helper()
	return d.runOn(t, "awsvpc", subIDs, fmt.Sprintf(pairScenario, requests), pair)
}

// runOn runs localecs on a kind of network, with a scenario and its task definition.
func (d desk) runOn(t *testing.T, network, subIDs, scenario, definition string) *testkit.Process {
	t.Helper()
	scene := testkit.PublicDir(t)
	for name, text := range map[string]string{"scenario.yaml": scenario, "pair.json": definition} {
		if err := os.WriteFile(filepath.Join(scene, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	args := testkit.AsUser(t, subIDs, filepath.Join(d.dir, "localecs"), "run", "-json", "-network", network, "-dir", d.state,
		"-var", "bin="+d.dir, "-var", "consul="+filepath.Join(d.dir, "consul"), scene)
	shell := append([]string{"/bin/sh", "-c", `ulimit -n 4096; exec "$@" 2>&1`, "sh"}, args...)
	return testkit.StartProcess(t, testkit.ProcessOptions{Env: []string{"PATH=" + d.dir + ":" + os.Getenv("PATH")}}, shell...)
}

// line is an event, a warning or the report of a run.
type line struct {
	Kind, Container, Status, Detail string
	Reason                          string
	UIDs                            string `json:"uids"`
	Answered                        int
	Failures                        []string
	raw                             string
}

func readLine(t *testing.T, p *testkit.Process) (l line) {
	t.Helper()
	l.raw = p.Line()
	if err := json.Unmarshal([]byte(l.raw), &l); err != nil {
		t.Fatalf("%v: %s", err, l.raw)
	}
	return l
}

// finish reads a run to its end and returns its lines.
func finish(t *testing.T, p *testkit.Process) (lines []line) {
	t.Helper()
	for {
		l := readLine(t, p)
		lines = append(lines, l)
		if l.Kind == "report" {
			break
		}
	}
	report := lines[len(lines)-1]
	if code := p.Wait(); code != 0 || len(report.Failures) > 0 || report.Answered == 0 {
		t.Errorf("exit %d, report %s", code, report.raw)
	}
	return lines
}

// log returns a container's output.
func (d desk) log(t *testing.T, container string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(d.state, "pair", "logs", "pair", container+".log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// stdout returns a container's output without the log that hello has on standard error:
// the two streams are not in step.
func (d desk) stdout(t *testing.T, container string) string {
	t.Helper()
	return regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d\..*\n`).ReplaceAllString(d.log(t, container), "")
}

// lowered is what every user who is not root is warned of: run allows 4096 files.
const lowered = "ulimit nofile is 4096:4096 instead of 65535:65535: the simulator itself has no more and lacks CAP_SYS_RESOURCE"

// reasons returns the texts of warnings, without the one about control groups, which some machines have for all users.
func reasons(lines []line) (texts []string) {
	for _, l := range lines {
		if l.Reason != "" && !strings.HasPrefix(l.Reason, "limit memory") {
			texts = append(texts, l.Reason)
		}
	}
	return texts
}

// A user with only one ID: every container runs as that user, without privileges
// where it was not to be root, and reports it.
func TestRootlessWithOneID(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	lines := finish(t, d.run(t, "", 5))
	if lines[0].UIDs != "0=61234" || !strings.Contains(lines[0].Reason, "/etc/subuid has no line") {
		t.Errorf("it begins with %s", lines[0].raw)
	}
	const remedy = ": more IDs take the programs newuidmap and newgidmap (package uidmap) and a range for the user in /etc/subuid and /etc/subgid"
	want := []string{lowered, "reader runs as 0:0 instead of 5995:5996" + remedy}
	if diff := cmp.Diff(want, reasons(lines[1:])); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("0\n0\nno such owner\n/data 0:0 770\n/data/private 0:0 600\n/data/public 0:0 644\n", d.log(t, "writer")); diff != "" {
		t.Errorf("writer (-want +got):\n%s", diff)
	}
	reader := "0\n0\nhello\nsecret\n/data/mine 0:0 644\nCapBnd:\t0000000000000000\n/proc/sys\n/sys/kernel\n0\n"
	if got := d.stdout(t, "reader"); got != reader {
		t.Errorf("reader (-want +got):\n%s", cmp.Diff(reader, got))
	}
}

// A user with a range of IDs: containers run as on ECS, and what a killed run
// has left of theirs can be removed by the next.
func TestRootlessWithSubIDs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.withHelpers(t)
	lines := finish(t, d.run(t, "100000:65536", 5))
	if lines[0].UIDs != "0=61234 1-65536=100000-165535" || !slices.Equal(reasons(lines), []string{lowered}) {
		t.Errorf("it begins with %s and warns of %q", lines[0].raw, reasons(lines))
	}
	if diff := cmp.Diff("0\n0\n/data 5995:5996 770\n/data/private 0:0 600\n/data/public 0:0 644\n", d.log(t, "writer")); diff != "" {
		t.Errorf("writer (-want +got):\n%s", diff)
	}
	reader := "5995\n5996\nhello\nprivate\n/data/mine 5995:5996 644\nCapBnd:\t00000000a00425fb\n/proc/sys\n/sys/kernel\n5995\n"
	if got := d.stdout(t, "reader"); got != reader {
		t.Errorf("reader (-want +got):\n%s", cmp.Diff(reader, got))
	}

	p := d.run(t, "100000:65536", 1000000)
	for readLine(t, p).Kind != "traffic_begin" {
	}
	ns := userNamespaces(t, p.PID)
	if len(ns) != 1 {
		t.Fatalf("user namespaces of localecs' children: %v, want one", ns)
	}
	// localecs inside, anchor, spawner, Consul, reader's init and hello.
	testkit.Eventually(t, "6 processes in the user namespace", func() bool { return inside(t, ns[0]) == 6 }) // and a probe, now and then
	p.Signal(syscall.SIGKILL)
	p.AllGone()
	testkit.Eventually(t, "every process ends", func() bool { return inside(t, ns[0]) == 0 })
	volumes, err := filepath.Glob(filepath.Join(d.state, "pair", "volumes", "*", "data"))
	if err != nil || len(volumes) != 1 {
		t.Fatalf("%v, %v; want the volume of the killed run", volumes, err)
	}
	if st, err := os.Stat(volumes[0]); err != nil || st.Sys().(*syscall.Stat_t).Uid != 100000+5995-1 {
		t.Errorf("%+v, %v; want a volume of a sub-ID's", st, err)
	}
	finish(t, d.run(t, "100000:65536", 5))
	if left, err := filepath.Glob(filepath.Join(d.state, "pair", "volumes", "*")); err != nil || len(left) != 0 {
		t.Errorf("volumes %v, %v; want none", left, err)
	}
}

// userNamespaces returns the user namespaces of a process's children.
func userNamespaces(t *testing.T, pid int) (all []string) {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		for _, child := range strings.Fields(string(children)) {
			ns, err := os.Readlink("/proc/" + child + "/ns/user")
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, ns)
		}
	}
	return all
}

// inside counts the processes of a user namespace.
func inside(t *testing.T, namespace string) (n int) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/ns/user")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if ns, err := os.Readlink(link); err == nil && ns == namespace {
			n++
		}
	}
	return n
}

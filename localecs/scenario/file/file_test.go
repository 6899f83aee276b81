package file

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

func TestLoadReadsTheExample(t *testing.T) {
	t.Parallel()
	f, err := Load(filepath.Join(testkit.Root(), "examples", "hello-mesh"))
	if err != nil {
		t.Fatal(err)
	}
	testkit.Equal(t, "Name", f.Name, "hello-mesh")
	testkit.Equal(t, "len(f.Tasks)", len(f.Tasks), 5)
	testkit.Equal(t, "len(f.Steps)", len(f.Steps), 25)
	testkit.Equal(t, "Checks.MinRequests", f.Checks.MinRequests, 200)
	if f.StopOrder != "reverse" {
		t.Errorf("stop order %q, want the default", f.StopOrder)
	}
	if f.GatePeriod != 5*time.Second {
		t.Errorf("gatePeriod %s, want the ECS agent's 5s", f.GatePeriod)
	}
	roles := f.IdentityRoles()
	slices.SortFunc(roles, func(a, b iam.Role) int { return strings.Compare(a.ARN(), b.ARN()) })
	if len(roles) != 3 {
		t.Fatalf("roles %+v", roles)
	}
	testkit.Equal(t, "roles[0].ARN()", roles[0].ARN(), "arn:aws:iam::123456789012:role/consul-ecs/api")
	testkit.Equal(t, "roles[2].ARN()", roles[2].ARN(), "arn:aws:iam::123456789012:role/hello-mesh-controller")
}

func TestParseReportsEveryMistake(t *testing.T) {
	t.Parallel()
	_, err := parseScenario([]byte(`
name: ../../etc
stopOrder: never
subnet: 10.42.0.0
timeScale: -1
environmentFiles: {web.env: web.env, "arn:aws:s3:::b/x.env": ""}
tasks: {web: web.json, ../db: db.json, api: "", one: one.json, two: two.json, three: three.json, four: four.json}
images: {empty: , i: {volumes: {data: "1:1", /x: root}}}
consul: {image: none}
steps:
- start: [web, cache]
- {start: [one], stop: [two]}
- {}
- await: {service: a, requests: 3, within: 1s}
- await: {task: web, within: 1s}
- await: {service: a}
- traffic: {task: web, port: 80, rate: 0}
- traffic: {task: web, port: 0, rate: 1}
- start: [web]
- mtls: {task: one, port: 70000}
- post: {task: web, url: "127.0.0.1:80/x"}
- endTraffic: true
- endTraffic: true
- await: {requests: 1, within: 1s}
- stop: [web]
- post: {task: web, url: "http://127.0.0.1:80/x"}
- traffic: {task: web, port: 80, rate: 1}
- stop: {}
- kill: {task: two, process: /bin/x, signal: SIGNONE}
- start: [two, three]
- await: {task: two, container: a, status: passing, stopped: true, stopCode: Bored, within: 1s}
- await: {task: three, inTraffic: false, stopCode: UserInitiated, within: 1s}
- get: {task: two, url: "ftp://127.0.0.1/x"}
- traffic: {task: three, port: 80, rate: 1}
- endTraffic: {name: a, failed: 1, maxFailed: -1}
- traffic: {task: three, port: 80, rate: 1}
- endTraffic: {name: a, maxFailed: 1, minFailed: 2}
- traffic: {task: three, port: 80, rate: 1}
- endTraffic: false
- await: {service: a, passing: 1, container: b, within: 1s}
- await: {task: three, passing: 1, inTraffic: true, within: 1s}
- await: {task: three, restarts: 1, tokens: -1, within: 1s}
- await: {task: three, container: a, restarts: -1, within: 1s}
- await: {task: three, inTraffic: true, agentFails: why, within: 1s}
- await: {service: a, passing: 1, tokens: 1, within: 1s}
- stop: {tasks: [three], agentFails: why}
- await: {faultsOver: true, requests: 1, within: 1s}
- faults: []
- faults: [{at: 1s, kill: {task: db, container: x}}, {at: 1s, endpoint: {name: sts}}]
- await: {faultsOver: true, within: 1s}
- {at: 5s, start: [four]}
- {at: 4s, stop: {tasks: [four], background: true, agentFails: why}}
- {at: 5s, stop: {tasks: [four]}}
- {at: 1s, stop: [four]}
faults: [{for: 1s}]
`))
	if err == nil {
		t.Fatal("no error")
	}
	got := strings.Split(err.Error(), "\n")
	want := []string{
		`name: "../../etc": want letters, digits, _ . and -: it is the name of a directory`,
		`stopOrder: "never": want reverse or at-once`,
		`tasks: "../db": want letters, digits, _ . and -: it is the name of a directory`,
		`tasks["api"]: want the task definition's file`,
		`images["empty"]: want programs`,
		`images["i"].volumes: "data": want an absolute path`,
		`images["i"].volumes: /x: owner "root": want uid:gid, such as 5996:5996`,
		`consul.image: "none" is not in images`,
		`subnet: "10.42.0.0": want a CIDR block such as 10.42.0.0/24`,
		`steps[0]: start: task "cache" is not in tasks`,
		`steps[1]: want exactly one of start, stop, scale, deploy, kill, await, mtls, get, post, faults, traffic, ` +
			`endTraffic, pause; got start, stop, nothing else`,
		`steps[2]: want exactly one of start, stop, scale, deploy, kill, await, mtls, get, post, faults, traffic, ` +
			`endTraffic, pause; got nothing else`,
		`steps[3]: await: there is no traffic by then`,
		`steps[3]: await: want exactly one of service, task, logins, requests, faultsOver`,
		`steps[3]: await: service needs either passing, 1 or more, or steady`,
		`steps[4]: await: task needs one of: container with status; container with restarts; tokens; ` +
			`inTraffic; stopped`,
		`steps[5]: await: service needs either passing, 1 or more, or steady`,
		`steps[5]: await: within: want a duration such as 60s: every wait has an end`,
		`steps[6]: traffic: rate: 0: want 1 to 1000 requests a second`,
		`steps[7]: traffic: there is traffic already; end it first`,
		`steps[7]: traffic: port: 0: want 1 to 65535`,
		`steps[8]: start: task "web" was started before`,
		`steps[9]: mtls: task "one" is not running by then`,
		`steps[9]: mtls: port: 70000: want 1 to 65535`,
		`steps[9]: mtls: service: must not be empty`,
		`steps[10]: post: url: "127.0.0.1:80/x": want one such as http://127.0.0.1:9090/path`,
		`steps[12]: endTraffic: there is no traffic by then`,
		`steps[13]: await: there is no traffic by then`,
		`steps[15]: post: task "web" is not running by then`,
		`steps[16]: traffic: task "web" is not running by then`,
		`timeScale: -1: want 0.01 to 1000: it divides the seconds of task definitions`,
		`environmentFiles: "web.env": want the ARN in the task definition, such as arn:aws:s3:::bucket/web.env`,
		`environmentFiles["arn:aws:s3:::b/x.env"]: want a file`,
		`steps[17]: stop: want a list of tasks`,
		`steps[18]: kill: task "two" is not running by then`,
		`steps[18]: kill: container: process and signal need one: without it everything in the task is killed`,
		`steps[18]: kill: process: "/bin/x": want the program's name without its directory`,
		`steps[18]: kill: signal: signal "SIGNONE" is unknown`,
		`steps[20]: await: task needs one of: container with status; container with restarts; tokens; inTraffic; ` +
			`stopped`,
		`steps[20]: await: stopCode: "Bored": want one of EssentialContainerExited, TaskFailedToStart, ` +
			`UserInitiated, ServiceSchedulerInitiated, SpotInterruption, TerminationNotice, InfrastructureHealth`,
		`steps[21]: await: stopCode and agentFails need stopped`,
		`steps[22]: get: task "two" is not running by then`, // it was awaited to stop
		`steps[22]: get: url: "ftp://127.0.0.1/x": want one such as http://127.0.0.1:9090/path`,
		`steps[23]: traffic: there is traffic already; end it first`,
		`steps[24]: endTraffic: failed is exact: it goes with neither maxFailed nor minFailed`,
		`steps[24]: endTraffic: -1: want 0 or more`,
		`steps[26]: endTraffic: name: "a" is an earlier phase's`,
		`steps[26]: endTraffic: maxFailed 1 is less than minFailed 2`,
		`steps[28]: endTraffic: want true, or a mapping with name, failed, maxFailed, minFailed`,
		`steps[29]: await: container, status, restarts, tokens, inTraffic, stopped and stopCode need task`,
		`steps[30]: await: passing and steady need service`,
		`steps[31]: await: task needs one of: container with status; container with restarts; tokens; inTraffic; ` +
			`stopped`,
		`steps[31]: await: restarts needs container, and 1 or more`,
		`steps[31]: await: tokens: -1: want 0 or more`,
		`steps[31]: await: tokens: checks.noTokensOf names no auth method: there is nothing to count`,
		`steps[32]: await: restarts needs container, and 1 or more`,
		`steps[33]: await: stopCode and agentFails need stopped`,
		`steps[33]: await: agentFails needs checks.agentsLeft: true`,
		`steps[34]: await: container, status, restarts, tokens, inTraffic, stopped and stopCode need task`,
		`steps[34]: await: tokens: checks.noTokensOf names no auth method: there is nothing to count`,
		`steps[35]: stop: agentFails needs checks.agentsLeft: true`,
		`faults[0]: want exactly one of endpoint, kill, oom, freeze, slow, spot, server, partition, link; got ` +
			`nothing else`,
		`steps[36]: await: there is no traffic by then`,
		`steps[36]: await: want exactly one of service, task, logins, requests, faultsOver`,
		`steps[37]: faults: want a list of faults`,
		`steps[38]: faults: faults[0].kill: there is no task "db"`,
		`steps[38]: faults: faults[1].endpoint: want exactly one of slow, hang, status, cut, wrong, skew, noTags`,
		`steps[41]: stop: agentFails needs checks.agentsLeft: true`,
		`steps[41]: stop: at: 4s: want a time that is not before that of an earlier step`,
		`steps[41]: stop: agentFails needs a step that waits for the end: this one has background`,
		`steps[43]: stop: at: 1s: want a time that is not before that of an earlier step`,
		`steps[43]: stop: task "four" is not running by then`, // the one in the background may still have been
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mistakes (-want +got):\n%s", diff)
	}
}

func TestConsulAddressFollowsFromTheSubnet(t *testing.T) {
	t.Parallel()
	const rest = "name: x\nsubnet: 10.7.4.0/22\ntasks: {a: a.json}\nimages: {i: {}}\n"
	s, err := parseScenario([]byte(rest + "consul: {image: i}\n"))
	if err != nil || s.Consul.Address != "10.7.7.254" {
		t.Errorf("address %q, %v", s.Consul.Address, err)
	}
}

func TestPauseIsBounded(t *testing.T) {
	t.Parallel()
	const rest = "name: x\ntasks: {a: a.json}\nimages: {i: {}}\nconsul: {image: i}\nsteps: [{pause: "
	s, err := parseScenario([]byte(rest + "10m}]\n"))
	if err != nil || s.Steps[0].String() != "pause 10m0s" {
		t.Errorf("steps %v, %v", s, err)
	}
	for pause, want := range map[string]string{"-1s": "pause: -1s: want 0s or more",
		"11m": "want a duration from 1ms to 10m0s"} {
		if _, err := parseScenario([]byte(rest + pause + "}]\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", pause, err)
		}
	}
}

func TestGatePeriodMayBeZero(t *testing.T) {
	t.Parallel()
	const document = "name: x\ntasks: {a: a.json}\nimages: {i: {}}\nconsul: {image: i}\ngatePeriod: 0s\n"
	s, err := parseScenario([]byte(document))
	if err != nil || s.GatePeriod != 0 {
		t.Errorf("gatePeriod %s, %v", s.GatePeriod, err)
	}
}

func TestShortAndLongForms(t *testing.T) {
	t.Parallel()
	s, err := parseScenario([]byte(`
name: x
timeScale: 10
gatePeriod: 5s
tasks: {a: a.json, b: {definition: b.json, service: b-service}, c: {definition: c.json, commands: {x: [run, -y]}}}
images: {i: {volumes: {/data: "5996:5995", /b: "0:0"}}}
consul: {image: i}
steps:
- start: [a, b, c]
- traffic: {task: a, port: 80, rate: 1}
- kill: {task: b, container: x}
- await: {task: b, stopped: true, agentFails: it was killed, within: 1s}
- endTraffic: true
- traffic: {task: a, port: 80, rate: 1}
- endTraffic: {name: exact, failed: 0}
- traffic: {task: a, port: 80, rate: 1}
- endTraffic: {minFailed: 1, maxFailed: 3}
- stop: [a]
- stop: {tasks: [c], agentFails: it was killed}
checks: {noTokensOf: [m], agentsLeft: true, cleanExits: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]Task{"a": {Definition: "a.json"}, "b": {Definition: "b.json", Service: "b-service"},
		"c": {Definition: "c.json", Commands: map[string][]string{"x": {"run", "-y"}}}}, s.Tasks); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	if s.TimeScale != 10 || s.GatePeriod != 5*time.Second {
		t.Errorf("timeScale %v, gatePeriod %s", s.TimeScale, s.GatePeriod)
	}
	images, err := s.HostImages(nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]runtime.Dir{{Path: "/b"}, {Path: "/data", UID: 5996, GID: 5995}},
		images["i"].Volumes); diff != "" {
		t.Errorf("volumes (-want +got):\n%s", diff)
	}
	testkit.Equal(t, "AgentFails", s.Steps[3].Await.AgentFails, "it was killed")
	testkit.Equal(t, "AgentsLeft", s.Checks.AgentsLeft, true)
	testkit.Equal(t, "CleanExits", s.Checks.CleanExits, true)
	var limits []string
	for _, i := range []int{4, 6, 8} {
		limits = append(limits, s.Steps[i].EndTraffic.Limits().String())
	}
	if diff := cmp.Diff([]string{"-", "0", "1 to 3"}, limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&Stop{Tasks: []string{"a"}}, s.Steps[9].Stop); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(&Stop{Tasks: []string{"c"}, AgentFails: "it was killed"},
		s.Steps[10].Stop); diff != "" {
		t.Error(diff)
	}
}

func TestEnvironmentFileTexts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "web.env"), []byte("A=1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := &Scenario{
		Dir: dir, EnvironmentFiles: map[string]string{"arn:a": "web.env", "arn:b": filepath.Join(dir, "web.env")},
	}
	got, err := s.EnvironmentFileTexts()
	if diff := cmp.Diff(map[string]string{"arn:a": "A=1\n", "arn:b": "A=1\n"}, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	s.EnvironmentFiles = map[string]string{"arn:a": "none", "arn:b": "neither"}
	_, err = s.EnvironmentFileTexts()
	if err == nil {
		t.Fatalf("got %v, want both files", err)
	}
	if !strings.Contains(err.Error(), `environmentFiles["arn:a"]: `+filepath.Join(dir, "none")) ||
		!strings.Contains(err.Error(), "neither") {
		t.Errorf("got %v, want both files", err)
	}
}

func TestImagesNamesEveryMissingProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cut"), []byte("\x7fELF"), 0o755); err != nil {
		t.Fatal(err)
	}
	f := &Scenario{Dir: dir, Images: map[string]*Image{
		"good": {Programs: Programs{Paths: map[string]string{"/a": "program", "/b": "${bin}/program"}}},
		"bad": {Programs: Programs{Paths: map[string]string{
			"/c": "${consul}", "/d": "absent", "/e": "data", "/f": ".", "/g": "/dev/null", "/h": "${bin}/x",
			"/i": "${mine}", "/j": "cut", "/k": "${given}",
		}}},
	}}
	images, err := f.HostImages(map[string]string{"bin": dir, "given": "/nowhere"})
	want := `images["bad"].programs["/c"]: needs ${consul}, which was not found: run 'make tools', put consul on PATH, or give -var consul=PATH
images["bad"].programs["/d"]: DIR/absent: no such file or directory
images["bad"].programs["/e"]: DIR/data is not executable: chmod +x makes it so
images["bad"].programs["/f"]: DIR is a directory, not a program
images["bad"].programs["/g"]: /dev/null is not a program
images["bad"].programs["/h"]: DIR/x: no such file or directory (from ${bin}/x): run 'make build', or give -var bin=DIRECTORY
images["bad"].programs["/i"]: needs ${mine}, which was not found: give -var mine=PATH
images["bad"].programs["/j"]: DIR/cut is cut short: copy or build it again
images["bad"].programs["/k"]: /nowhere: no such file or directory (from ${given}): give -var given=PATH`
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(want, strings.ReplaceAll(err.Error(), dir, "DIR")); diff != "" {
		t.Errorf("mistakes (-want +got):\n%s", diff)
	}
	if got := images["good"].Programs; got["/a"] != program || got["/b"] != program {
		t.Errorf("programs %v, want both to be %s", got, program)
	}
}

func FuzzParse(f *testing.F) {
	example, err := os.ReadFile(filepath.Join(testkit.Root(), "examples", "hello-mesh", FileName))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	f.Add([]byte("steps:\n- await: {within: 1s}\n"))
	f.Add([]byte(withFaults))
	f.Add([]byte("tasks: {a: {definition: b}}\nsteps:\n- stop: {tasks: [a]}\n- endTraffic: {failed: 0}\n- " +
		"endTraffic: false\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := parseScenario(data)
		if err != nil {
			return
		}
		if s.Name == "" || len(s.Tasks) == 0 {
			t.Errorf("accepted without name or tasks: %q", data)
		}
		_, _ = s.HostImages(nil)
		s.IdentityRoles()
	})
}

// parseScenario calls parse as `localecs run` does.
func parseScenario(data []byte) (*Scenario, error) { return parse(data, (*Scenario).problems) }

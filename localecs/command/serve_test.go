package command

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// served is a running `localecs serve`, and the environment of its clients.
type served struct {
	*testkit.Process
	dir string
	env []string
}

// startServe starts the command with the images of testdata/serve, and flags.
func startServe(t *testing.T, command func(args ...string) *testkit.Process, flags ...string) *served {
	t.Helper()
	s := &served{dir: filepath.Join(testkit.PublicDir(t), "state")}
	s.Process = command(append([]string{"serve", "-json", "-dir", s.dir, "-events", s.dir + ".events", "-images", filepath.Join(testkit.Root(), "localecs", "command", "testdata", "serve")}, flags...)...)
	var exports map[string]string
	line := s.Line()
	if err := json.Unmarshal([]byte(line), &exports); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	// Nothing of the user who runs the tests.
	s.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "AWS_EC2_METADATA_DISABLED=true", "AWS_PAGER="}
	for name, value := range exports {
		s.env = append(s.env, name+"="+value)
	}
	return s
}

// asRoot starts localecs as who runs the tests.
func asRoot(t *testing.T) func(args ...string) *testkit.Process {
	t.Helper()
	if os.Getuid() != 0 {
		testkit.Missing(t, "network namespaces need root")
	}
	return asSelf(t)
}

func asSelf(t *testing.T) func(args ...string) *testkit.Process {
	return func(args ...string) *testkit.Process {
		return testkit.StartProcess(t, testkit.ProcessOptions{}, testkit.SelfArgs("localecs", args...)...)
	}
}

// client runs a client of the API, and returns what it says.
func (s *served) client(t *testing.T, program string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), testkit.RequireBinary(t, program), args...)
	cmd.Env = s.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return strings.TrimSpace(stderr.String()), err
	}
	return strings.TrimSpace(stdout.String()), nil
}

// aws runs the aws program, which has to succeed.
func (s *served) aws(t *testing.T, args ...string) string {
	t.Helper()
	out, err := s.client(t, "aws", append([]string{"--output", "text", "ecs"}, args...)...)
	if err != nil {
		t.Fatalf("aws ecs %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// end sends Ctrl-C; what is left are logs, and how all has ended.
func (s *served) end(t *testing.T) {
	t.Helper()
	s.Signal(syscall.SIGINT)
	if code := s.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.AllGone()
	left, err := filepath.Glob(filepath.Join(s.dir, "*"))
	if d := cmp.Diff([]string{filepath.Join(s.dir, "logs"), filepath.Join(s.dir, "state.json")}, left); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

const subnets = "awsvpcConfiguration={subnets=[subnet-1]}"

func TestAWSCommandLineDrivesServe(t *testing.T) {
	t.Parallel()
	s := startServe(t, asRoot(t))
	definition := "file://" + filepath.Join(testkit.Root(), "localecs", "command", "testdata", "serve", "web.json")
	if got := s.aws(t, "register-task-definition", "--cli-input-json", definition, "--query", "taskDefinition.[family,revision,status]"); got != "web\t1\tACTIVE" {
		t.Errorf("registered %q", got)
	}
	arn := s.aws(t, "run-task", "--task-definition", "web", "--network-configuration", subnets, "--query", "tasks[0].taskArn")
	s.aws(t, "wait", "tasks-running", "--tasks", arn)
	if got := s.aws(t, "list-tasks", "--family", "web", "--query", "taskArns[0]"); got != arn {
		t.Errorf("listed %q, want %q", got, arn)
	}
	if got := s.aws(t, "describe-tasks", "--tasks", arn, "--query", "tasks[0].[lastStatus,capacityProviderName,containers[0].name]"); got != "RUNNING\tFARGATE\tapp" {
		t.Errorf("described %q", got)
	}
	s.aws(t, "tag-resource", "--resource-arn", arn, "--tags", "key=a,value=b")
	if got := s.aws(t, "list-tags-for-resource", "--resource-arn", arn, "--query", "tags[0].[key,value]"); got != "a\tb" {
		t.Errorf("tags %q", got)
	}
	out, err := s.client(t, "aws", "ecs", "list-attributes", "--target-type", "container-instance")
	if want := "An error occurred (UnknownOperationException) when calling the ListAttributes operation: " +
		`localecs does not have the operation "ListAttributes".`; err == nil || !strings.Contains(out, want) {
		t.Errorf("what is not served: %s, %v", out, err)
	}
	testkit.Eventually(t, "the container says hello", func() bool {
		log, err := os.ReadFile(filepath.Join(s.dir, "logs", "web-"+arn[strings.LastIndex(arn, "/")+1:], "app.log"))
		return err == nil && string(log) == "hello\n"
	})
	// It runs when all ends.
	s.end(t)
	events, err := os.ReadFile(s.dir + ".events")
	if lines := strings.Split(strings.TrimSpace(string(events)), "\n"); err != nil || len(lines) != 6 || !strings.Contains(lines[5], `"lastStatus":"STOPPED"`) {
		t.Errorf("%v, events\n%s", err, events)
	}
}

func TestBoto3DrivesServe(t *testing.T) {
	t.Parallel()
	s := startServe(t, asRoot(t))
	dir := filepath.Join(testkit.Root(), "localecs", "command", "testdata", "serve")
	out, err := s.client(t, "aws-python", filepath.Join(dir, "life.py"), filepath.Join(dir, "web.json"), filepath.Join(s.dir, "logs"))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var tasks []string
	if err := json.Unmarshal([]byte(out), &tasks); err != nil || len(tasks) != 2 {
		t.Fatalf("%s, %v", out, err)
	}
	for _, arn := range tasks {
		log, err := os.ReadFile(filepath.Join(s.dir, "logs", "boto-"+arn[strings.LastIndex(arn, "/")+1:], "app.log"))
		if err != nil || string(log) != "salut\n" {
			t.Errorf("the container says %q, %v", log, err)
		}
	}
	s.end(t)
}

// asUser starts localecs as a user who is not root, with state in a directory of their own.
func asUser(t *testing.T) (command func(args ...string) *testkit.Process, state string) {
	t.Helper()
	dir := testkit.PublicDir(t)
	testkit.PublicCopy(t, dir, filepath.Join(testkit.Programs(t), "localecs"))
	state = filepath.Join(dir, "state")
	if err := os.Mkdir(state, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(state, testkit.UserID, testkit.UserID); err != nil {
		testkit.Missing(t, "becoming another user needs root")
	}
	return func(args ...string) *testkit.Process {
		for i, a := range args {
			switch a {
			case "-dir":
				args[i+1] = filepath.Join(state, "serve")
			case "-events":
				args[i+1] = filepath.Join(state, "events")
			}
		}
		return testkit.StartProcess(t, testkit.ProcessOptions{}, testkit.AsUser(t, "", append([]string{filepath.Join(dir, "localecs")}, args...)...)...)
	}, state
}

// A user who is not root has the API where it was asked for, although his tasks are in another network.
func TestServeRootless(t *testing.T) {
	t.Parallel()
	command, state := asUser(t)
	s := startServe(t, command)
	s.dir = filepath.Join(state, "serve")
	definition := "file://" + filepath.Join(testkit.Root(), "localecs", "command", "testdata", "serve", "web.json")
	s.aws(t, "register-task-definition", "--cli-input-json", definition)
	arn := s.aws(t, "run-task", "--task-definition", "web", "--network-configuration", subnets, "--query", "tasks[0].taskArn")
	s.aws(t, "wait", "tasks-running", "--tasks", arn)
	s.end(t)
}

// Tasks without processes need no root, no image that exists, and no file.
func TestServeSimulated(t *testing.T) {
	t.Parallel()
	command, state := asUser(t)
	s := startServe(t, command, "-simulated", "-timing", "attach=10ms,pull=10ms,start=10ms,stop=10ms,detach=10ms")
	s.aws(t, "register-task-definition", "--family", "web", "--network-mode", "awsvpc", "--requires-compatibilities", "FARGATE",
		"--cpu", "256", "--memory", "512", "--container-definitions", `[{"name":"app","image":"nobody/knows:1"}]`)
	arn := s.aws(t, "run-task", "--task-definition", "web", "--network-configuration", subnets, "--query", "tasks[0].taskArn", "--overrides",
		`{"containerOverrides":[{"name":"app","environment":[{"name":"LOCALECS_SIMULATE","value":"exit=3,after=1s"}]}]}`)
	s.aws(t, "wait", "tasks-stopped", "--tasks", arn)
	if got := s.aws(t, "describe-tasks", "--tasks", arn, "--query", "tasks[0].[stopCode,containers[0].exitCode]"); got != "EssentialContainerExited\t3" {
		t.Errorf("described %q", got)
	}
	s.aws(t, "create-service", "--service-name", "web", "--task-definition", "web", "--desired-count", "12", "--network-configuration", subnets)
	s.aws(t, "wait", "services-stable", "--services", "web")
	s.Signal(syscall.SIGINT)
	if code := s.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	left, err := filepath.Glob(filepath.Join(state, "*"))
	if want := []string{filepath.Join(state, "events")}; err != nil || !cmp.Equal(left, want) {
		t.Errorf("left %q, %v", left, err)
	}
}

func TestServeRefuses(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`-listen: "0.0.0.0:0": want a loopback address such as 127.0.0.1:0: a caller of the API can run programs here`: {"-listen", "0.0.0.0:0"},
		"there is no scenario.yaml in testdata":                                                {"-images", "testdata"},
		`want new=D,eni=D,tags=D,lists=D,counts=D or some of them, got "x=1s"`:                 {"-lag", "new=1s,x=1s"},
		`eni: want a duration such as 2s, got "soon"`:                                          {"-lag", "eni=soon"},
		"want attach=D,pull=D,start=D,stop=D,detach=D,healthy=D or some of them, got \"x=1s\"": {"-simulated", "-timing", "x=1s"},
		"-timing requires -simulated":                                                          {"-timing", "stop=1s"},
		"-network and -simulated are mutually exclusive":                                       {"-simulated", "-network", "host"},
		"unexpected argument":                                                                  {"more"},
	} {
		r := call(t, append([]string{"serve"}, args...)...)
		if r.code != 1 || r.stdout != "" || !strings.Contains(r.stderr, want) {
			t.Errorf("%q: exit %d, %s, want %s", args, r.code, r.stderr, want)
		}
	}
}

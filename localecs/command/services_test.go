package command

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// AWS's own client takes a service through its life, with tasks that are
// processes.
func TestBoto3DrivesServices(t *testing.T) {
	t.Parallel()
	s := startServe(t, asRoot(t))
	dir := filepath.Join(testkit.Root(), "localecs", "command", "testdata", "serve")
	got, err := s.client(t, "aws-python", filepath.Join(dir, "services.py"))
	if err != nil {
		t.Fatalf("%v\n%s", err, got)
	}
	want := `[["created", 2, "COMPLETED", "web:1"], ["rolled over", 2, "COMPLETED", "web:1"], ["rolled back", 2, "COMPLETED", "web:1"], ` +
		`["ROLLBACK_SUCCESSFUL", "SUCCESSFUL", "SUCCESSFUL"], ["bad:1", "web:1", "web:1"], ` +
		`["replaced", 2, "COMPLETED", "web:1"], ["The service cannot be stopped while it is scaled above 0."], ["deleted"]]`
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	s.end(t)
}

// A deployment whose tasks crash or do not start fails for the clients that pipelines use, and one that
// works does not.
func TestClientsSeeADeploymentFail(t *testing.T) {
	t.Parallel()
	s := startServe(t, asSelf(t), "-simulated", "-throttle=false", "-timing", "attach=10ms,pull=10ms,start=10ms,"+
		"stop=10ms,detach=10ms,healthy=1s")
	script := filepath.Join(testkit.Root(), "localecs", "command", "testdata", "serve", "waiters.py")
	if out, err := s.client(t, "aws-python", script); err != nil {
		t.Fatal(err, out)
	}
	const role = "arn:aws:iam::123456789012:role/web" // without one, ecs-deploy sends ""
	s.aws(t, "register-task-definition", "--family", "web", "--network-mode", "awsvpc", "--requires-compatibilities",
		"FARGATE", "--cpu", "256", "--memory", "512", "--task-role-arn", role, "--execution-role-arn", role,
		"--container-definitions", `[{"name":"app","image":"nobody/knows:1"}]`)
	for service, c := range map[string]struct{ behaviour, breaker, flag, want string }{
		"works":   {"stop=20ms", "enable=false,rollback=false", "--diff", ""},
		"crashes": {"exit=3,after=100ms", "enable=false,rollback=false", "--diff", "unable to consistently start tasks"},
		"breaker": {"start=REASON", "enable=true,rollback=false", "--ignore-warnings", "Deployment Failed!"},
	} {
		t.Run(service, func(t *testing.T) {
			t.Parallel()
			s.aws(t, "create-service", "--service-name", service, "--task-definition", "web:1", "--desired-count", "1",
				"--network-configuration", subnets, "--deployment-configuration",
				"deploymentCircuitBreaker={"+c.breaker+"}")
			s.aws(t, "wait", "services-stable", "--services", service)
			out, err := s.client(t, "ecs-deploy", "deploy", "default", service, "--no-deregister", "--timeout", "120",
				c.flag, "-e", "app", "LOCALECS_SIMULATE", c.behaviour)
			testkit.Equal(t, "ecs-deploy fails", err != nil, c.want != "")
			if !strings.Contains(out, c.want) {
				t.Errorf("ecs-deploy: got %s, want %s", out, c.want)
			}
			out, err = s.client(t, "aws", "ecs", "wait", "services-stable", "--services", service)
			testkit.Equal(t, "aws ecs wait fails", err != nil, c.want != "")
			if err != nil {
				testkit.Equal(t, "its error", out, "Waiter ServicesStable failed: Max attempts exceeded")
			}
		})
	}
}

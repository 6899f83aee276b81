package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// inGovCloud is hello-mesh in an AWS region whose ARNs begin with arn:aws-us-gov: the
// machine of an instance of api dies, and the controller removes what is left.
const inGovCloud = `
tasks:
  controller: controller.json
  api-1: api.json

steps:
  - start: [controller]
  - await: {logins: [iam-ecs-client-token, iam-ecs-service-token], within: 60s}
  - start: [api-1]
  - await: {service: api, passing: 1, within: 90s}
  - kill: {task: api-1}
  - await:
      task: api-1
      stopped: true
      stopCode: EssentialContainerExited
      agentFails: it was killed; the servers forget it after 15 minutes
      within: 60s
  - get:
      task: controller
      url: http://127.0.0.1:9102/metrics
      has:
        - 'deletions_total{kind="token",reason="stopped"} 2'
        - 'deletions_total{kind="service",reason="stopped"} 2'
  - stop: [controller]

checks:
  noTokensOf: [iam-ecs-client-token, iam-ecs-service-token]
  noServices: [api, api-sidecar-proxy]
  agentsLeft: true
  cleanExits: true
`

func TestEndToEndControllerCleansUpInGovCloud(t *testing.T) {
	t.Parallel()
	dir := derive(t, "hello-mesh", inGovCloud, "us-east-1", "us-gov-west-1", "arn:aws:", "arn:aws-us-gov:")
	code, report, _ := runReport(t, programs(t), dir)
	if code != 0 || len(report.Failures) != 0 {
		t.Errorf("exit %d, failures %q", code, report.Failures)
	}
}

// derive copies an example with other tasks, steps and checks, which begin with "tasks:",
// with open gates, and with texts replaced in all its files. An empty rest leaves tasks,
// steps, checks and gates as they are.
func derive(t testing.TB, name, rest string, oldnew ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	files, err := filepath.Glob(filepath.Join(example(name), "*.*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("files of %s: %v, %v", name, files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		changed := string(text)
		if filepath.Base(file) == "scenario.yaml" && rest != "" {
			before, _, _ := strings.Cut(changed, "\ntasks:")
			if !strings.Contains(before, "gatePeriod:") {
				before += "\ngatePeriod: 0s\n"
			}
			changed = before + rest
		}
		changed = strings.NewReplacer(oldnew...).Replace(changed)
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), []byte(changed), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// The containers that admit adds are hardened: read-only, without capabilities, none of them root
// but the mesh-init of a transparent proxy. TestEndToEndAdmittedTasksJoinTheMesh has Envoy alone.
func TestEndToEndHardenedTasks(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]struct {
		mode, launch string
		flags        []string
	}{
		"transparent": {`"proxy": {"mode": "direct"}, "transparentProxy": {"excludeInboundPorts": [8080]}`, "EC2", nil},
		"dataplane":   {`"proxy": {"mode": "dataplane"}`, "FARGATE", []string{"-var", "dataplane=" + consulDataplane(t)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags := append(programs(t), change.flags...)
			dir := derive(t, "admit", "",
				`"proxy": {"mode": "direct"}`, change.mode, "FARGATE", change.launch,
				"admitted/", "admitted-",
				"/usr/local/bin/envoy: ${envoy}\n", "/usr/local/bin/envoy: ${envoy}\n"+dataplaneImage(change.flags))
			for _, task := range []string{"web.json", "api.json"} {
				admitted, err := exec.CommandContext(t.Context(), filepath.Join(testkit.Programs(t), "consul-ecs"),
					"admit", "-config", filepath.Join(dir, "mesh.json"), filepath.Join(dir, task)).Output()
				if err != nil {
					t.Fatal(err)
				}
				if n := strings.Count(string(admitted), `"readonlyRootFilesystem": true`); n < 2 {
					t.Errorf("%d containers of %s are read-only, want 2 or 3", n, task)
				}
				if err := os.WriteFile(filepath.Join(dir, "admitted-"+task), admitted, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			code, report, _ := runReport(t, flags, dir)
			if code != 0 {
				t.Errorf("exit code %d", code)
			}
			if report.Failed != 0 || report.Answered < 40 {
				t.Errorf("%d requests failed, %d were answered, want none and 40", report.Failed, report.Answered)
			}
			if len(report.Failures) != 0 {
				t.Errorf("failures %q", report.Failures)
			}
		})
	}
}

// dataplaneImage returns the image of consul-dataplane for a scenario that has the program.
func dataplaneImage(flags []string) string {
	if len(flags) == 0 {
		return ""
	}
	return "  hashicorp/consul-dataplane:1.9.0:\n    programs:\n      /usr/local/bin/envoy: ${envoy}\n      /usr/local/bin/consul-dataplane: ${dataplane}\n"
}

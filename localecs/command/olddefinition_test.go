package command

import (
	"path/filepath"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// A task definition of hashicorp/consul-ecs 0.6 runs as it is. Its images' programs are
// stood in for: consul-ecs by this project's, Consul and Envoy by newer ones.
func TestEndToEndTaskDefinitionOfConsulECS06(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := append([]string{"-dir", dir}, programs(t)...)
	code, report, _ := runReport(t, args, filepath.Join(testkit.Root(), "localecs", "command", "testdata", "agent-0.6"))
	if code != 0 || len(report.Failures) != 0 || len(report.Left) != 0 {
		t.Errorf("exit %d, failures %q, left %v", code, report.Failures, report.Left)
	}
}

package command

import (
	"path/filepath"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// A task has its own Envoy beside its proxy, whose command line is one from before: both run.
func TestEndToEndTwoEnvoysInOneTask(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(testkit.Root(), "localecs", "command", "testdata", "two-envoys")
	code, report, _ := runReport(t, programs(t), dir)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	if report.Failures == nil || len(report.Failures) != 0 {
		t.Errorf("failures %#v, want an empty list", report.Failures)
	}
}

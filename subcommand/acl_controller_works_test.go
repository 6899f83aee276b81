package subcommand

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/awsutil/ecsread"
	"github.com/meshtask/consul-ecs/controller"
	"github.com/meshtask/consul-ecs/controller/cleanup"
)

// TestResult: what the metrics and the pace are made of.
func TestResult(t *testing.T) {
	t.Parallel()
	got := result(cleanup.Report{
		Running: 5, Tokens: 12, Services: 10, Foreign: 1,
		Plan: cleanup.Plan{Kept: []cleanup.Kept{
			{Task: "a", Why: cleanup.KeepMissingYoung, Again: 3 * time.Minute},
			{Task: "b", Why: cleanup.KeepMissingRecheck, Again: 40 * time.Second},
			{Task: "c", Why: cleanup.KeepMissingYoung, Again: time.Minute},
			{Task: "d", Why: cleanup.KeepStopping},
		}},
		Deleted: []cleanup.Item{
			{Kind: cleanup.KindService, Reason: cleanup.ReasonStopped}, {Kind: cleanup.KindToken, Reason: cleanup.ReasonStopped},
			{Kind: cleanup.KindToken, Reason: cleanup.ReasonMissing}, {Kind: cleanup.KindToken, Reason: cleanup.ReasonStopped},
		},
		Failed: []cleanup.Failed{{}, {}, {}},
		AWS:    ecsread.Counts{Calls: 1},
	}, ecsread.Counts{Calls: 7, Throttles: 2})
	want := controller.Result{
		Tasks: 5, Tokens: 12, Services: 10, Foreign: 1, Failed: 3, AWSCalls: 7, Throttles: 2, Again: 40 * time.Second,
		Kept: map[string]int{"missing_young": 2, "missing_recheck": 1, "stopping": 1},
		Deleted: map[controller.Deletion]int{
			{Kind: "service", Reason: "stopped"}: 1, {Kind: "token", Reason: "stopped"}: 2, {Kind: "token", Reason: "missing"}: 1,
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

package subcommand

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/controller"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// shop returns the status of two services, of which one disagrees, and of a gateway that ECS does not run.
func shop() controller.ClusterStatus {
	return controller.ClusterStatus{
		Cluster:     "arn:aws:ecs:us-east-1:123456789012:cluster/shop",
		Controllers: []controller.LeaderStatus{{Command: "controller", Leader: "task 9"}, {Command: "acl-controller"}},
		Unknown:     []string{"the number of sessions is unknown: no\nanswer"},
		Services: []controller.ServiceStatus{
			{Service: "api", Desired: new(3), Running: new(3), Registered: 3, Passing: 3, Tokens: new(3),
				MeshInit: map[string]int{"v1.0.0": 3}, Envoy: map[string]int{"1.39.1": 1, "1.40.0": 2},
				Remarks: []string{"2 versions of Envoy"}},
			{Service: "gate", Kind: "mesh-gateway", Registered: 1, Passing: 1, Tokens: new(1)},
			{Service: "web", Desired: new(3), Running: new(3), Registered: 2, Passing: 1, Tokens: new(2),
				MeshInit: map[string]int{"v1.0.0": 2},
				Problems: []string{"3 running, 2 registered", "2 registered, 1 passing"}},
		},
	}
}

func TestStatusTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := newStatusScreen(&out, false, false).show([]controller.ClusterStatus{shop()}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, "status.txt", out.Bytes())
}

// In a pipe the first look is whole, and later ones are what has changed; a terminal is repainted.
func TestStatusOfLaterLooks(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 2, 17, 0, 0, 0, time.UTC)
	better := shop()
	better.Services[2] = better.Services[0]
	better.Services[2].Service = "web"
	table := func(s controller.ClusterStatus) string {
		var text strings.Builder
		printStatus(&text, &s)
		return text.String()
	}
	const clear = "\x1b[H\x1b[2J17:00:00\n"
	for name, tc := range map[string]struct {
		repaint bool
		want    string
	}{
		"pipe": {false, table(shop()) + "17:00:00 web                  3        3        3           3        3" +
			"       -         v1.0.0      1.39.1 (1), 1.40.0 (2)  2 versions of Envoy\n" +
			"17:00:00 3 services, 0 disagree\n"},
		"terminal": {true, clear + table(shop()) + clear + table(shop()) + clear + table(better)},
	} {
		var out strings.Builder
		screen := newStatusScreen(&out, true, false)
		screen.repaint = tc.repaint
		for _, s := range []controller.ClusterStatus{shop(), shop(), better} {
			if err := screen.show([]controller.ClusterStatus{s}, at); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(tc.want, out.String()); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

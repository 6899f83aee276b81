package command

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// calledForAWhile has web call api for longer than health-sync needs to read Envoy's counters. The run fails after 10 s
// without a good answer.
const calledForAWhile = webAndAPI + `
  - traffic: {task: web, port: 8080, rate: 10}
  - pause: 8s
  - endTraffic: {name: calls, failed: 0}
  - stop: [web, api-1]
  - stop: [controller]

checks: {cleanExits: true}
`

// Each fault of the traffic is in the log of the container that sees it, with its ID, and a healthy task has none.
func TestEndToEndTrafficFaults(t *testing.T) {
	t.Parallel()
	const denied = "{Name: web, Action: deny}"
	const protocol = "configEntries:\n    - {Kind: service-defaults, Name: api, Protocol: http}"
	for name, tc := range map[string]struct {
		long   bool
		change []string
		want   []string
	}{
		"none":      {false, nil, nil},
		"dataplane": {true, dataplaneForEnvoy(), nil},
		"denied": {false, []string{"{Name: web, Action: allow}", denied},
			[]string{"api-1/consul-ecs-health-sync CE-TRAFFIC-DENIED"}},
		"denied by HTTP": {true, []string{"{Name: web, Action: allow}", denied, "configEntries:", protocol},
			[]string{"api-1/consul-ecs-health-sync CE-TRAFFIC-DENIED"}},
		"denied with dataplane": {true, append(dataplaneForEnvoy(), "{Name: web, Action: allow}", denied),
			[]string{"api-1/consul-ecs-health-sync CE-TRAFFIC-DENIED"}},
		"application on another port": {false, []string{`\"name\":\"api\",\"port\":9090`,
			`\"name\":\"api\",\"port\":9999`, "configEntries:", protocol},
			[]string{"api-1/consul-ecs-health-sync CE-TRAFFIC-APP-REFUSED"}},
		"upstream misspelt": {false, []string{`\"destinationName\":\"api\"`, `\"destinationName\":\"apii\"`},
			[]string{"web/consul-ecs-health-sync CE-TRAFFIC-NO-INSTANCE",
				"web/consul-ecs-mesh-init CE-TRAFFIC-UPSTREAM"}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.long {
				testkit.Long(t)
			}
			t.Parallel()
			flags := append(programs(t), "-var", "dataplane="+consulDataplane(t))
			dir := t.TempDir()
			t.Cleanup(func() { showLogs(t, dir) })
			scenario := derive(t, "agentless-mesh", calledForAWhile, tc.change...)
			got := call(t, append(append([]string{"run", "-dir", dir}, flags...), scenario)...)
			if (got.code != 0) != (tc.want != nil) {
				t.Errorf("exit %d with the faults %v\n%s\n%s", got.code, tc.want, got.stdout, got.stderr)
			}
			if diff := cmp.Diff(tc.want, trafficFaults(t, dir)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

// trafficFaults returns the IDs of faults of the traffic in the logs of a run, with task and container, each once.
// A service that its caller does not find at its own start, since both start startedTogether, is no fault.
func trafficFaults(t *testing.T, dir string) (found []string) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*", "logs", "*", "consul-ecs-*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("logs in %s: %v, %v", dir, logs, err)
	}
	for _, file := range logs {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		container := filepath.Base(filepath.Dir(file)) + "/" + filepath.Base(file[:len(file)-len(".log")])
		for _, match := range regexp.MustCompile(`.*id=(CE-TRAFFIC-\S+)`).FindAllSubmatch(text, -1) {
			if startedTogether.Match(match[0]) {
				continue
			}
			found = append(found, container+" "+string(match[1]))
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

var startedTogether = regexp.MustCompile(`upstream=api( |$)`)

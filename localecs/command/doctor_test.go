package command

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// staying keeps the tasks of derive for a moment after they are in the mesh.
const staying = webAndAPI + `
  - pause: 15s
  - stop: [web, api-1]
  - stop: [controller]

checks: {cleanExits: true}
`

// Doctor finds the one thing that is wrong, in a container without a shell, and within its limit.
func TestEndToEndDoctor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		long    bool
		example string
		rest    string
		change  []string
		// wrong is what is not ok, and names further checks that there are.
		wrong map[string]string
		names []string
	}{
		"application on another port": {false, "agentless-mesh", staying,
			[]string{`\"name\":\"api\",\"port\":9090`, `\"name\":\"api\",\"port\":9999`},
			map[string]string{"application port": "failed CE-TRAFFIC-APP-REFUSED"}, []string{"Consul gRPC"}},
		"healthy with an agent": {true, "hello-mesh",
			strings.Replace(staying, "[iam-ecs-service", "[iam-ecs-client-token, iam-ecs-service", 1),
			nil, map[string]string{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.long {
				testkit.Long(t)
			}
			t.Parallel()
			dir := t.TempDir()
			scenario := derive(t, tc.example, tc.rest, tc.change...)
			flags := programs(t)
			ended := make(chan result, 1)
			go func() { ended <- call(t, append(append([]string{"run", "-dir", dir}, flags...), scenario)...) }()
			var got map[string]string
			for inMesh := false; !inMesh; {
				select {
				case r := <-ended:
					t.Fatalf("exit %d before the task was in the mesh, last %v\n%s", r.code, got, r.stderr)
				case <-time.After(time.Second):
				}
				got = examined(callWith(t, "", "exec", "-dir", dir, "-container", "consul-ecs-health-sync", "api-1",
					"--", "/consul/consul-ecs", "doctor", "-json").stdout)
				inMesh = !slices.ContainsFunc([]string{"registration", "Envoy upstreams", "Envoy configuration"},
					func(check string) bool { return got[check] != "ok" })
			}
			all := append([]string{"AWS identity", "Consul HTTP", "Envoy", "Envoy certificates",
				"Envoy configuration", "Envoy upstreams", "application port", "configuration", "mesh-init",
				"registration", "task metadata", "task role", "token"}, tc.names...)
			slices.Sort(all)
			if diff := cmp.Diff(all, slices.Sorted(maps.Keys(got))); diff != "" {
				t.Errorf("checks (-want +got):\n%s", diff)
			}
			maps.DeleteFunc(got, func(_, result string) bool { return result == "ok" })
			if diff := cmp.Diff(tc.wrong, got); diff != "" {
				t.Errorf("what is not ok (-want +got):\n%s", diff)
			}
			if r := <-ended; r.code != 0 {
				t.Errorf("exit %d\n%s\n%s", r.code, r.stdout, r.stderr)
			}
		})
	}
}

// examined returns the result of each check with its ID, from doctor's findings; nil for another text.
func examined(text string) map[string]string {
	var findings []struct{ Check, Result, ID string }
	if json.Unmarshal([]byte(text), &findings) != nil {
		return nil
	}
	results := map[string]string{}
	for _, f := range findings {
		results[f.Check] = strings.TrimSpace(f.Result + " " + f.ID)
	}
	return results
}

package file

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/taskdef"
)

func TestContainersThatAWSAdds(t *testing.T) {
	t.Parallel()
	s, err := parseScenario([]byte(aroundServices + `
serviceConnect: {image: i, command: [envoy], healthCheck: [CMD, check]}
guardDuty: {image: j}
services: {api: {definition: api.json, serviceConnect: true}, web: {definition: web.json}}
steps: [{start: [api, web]}]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := controlplane.Added{
		ServiceConnect: &taskdef.Container{
			Image: "i", Command: []string{"envoy"}, User: "20000", Essential: new(true),
			HealthCheck: &taskdef.HealthCheck{Command: []string{"CMD", "check"}, Interval: new(5)},
		},
		GuardDuty: &taskdef.Container{Image: "j", Essential: new(false)},
	}
	if d := cmp.Diff(want, s.Added()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	for name, want := range map[string]bool{"api": true, "web": false} {
		if got := s.Services[name].Input(name, "c", "d").ServiceConnect.IsEnabled(); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	warnings := Definitions{}.MissingImages(s)
	if len(warnings) != 1 || warnings[0] != "guardDuty: image j is not among the scenario's: no task that has the "+
		"container will start" {
		t.Errorf("warnings %q", warnings)
	}
	if d := cmp.Diff(controlplane.Added{}, Default().Added()); d != "" {
		t.Errorf("of no keys: %s", d)
	}
}

func TestMistakesInContainersThatAWSAdds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		`serviceConnect: {}`: {
			"serviceConnect.image: want the image that stands for AWS's, one of images",
			"serviceConnect.healthCheck: want a command: the other containers of the task start when the proxy is " +
				"HEALTHY",
		},
		`serviceConnect: {image: i, healthCheck: [NONE]}`: {"serviceConnect.healthCheck: want a command"},
		`guardDuty: {healthCheck: [CMD]}`: {
			"guardDuty.image: want the image that stands for AWS's, one of images",
			"guardDuty.healthCheck: want a command",
		},
		`services: {api: {definition: api.json, serviceConnect: true}}`: {
			`services["api"].serviceConnect: the scenario has no proxy for it: ` +
				`add serviceConnect: {image, healthCheck}`,
		},
	} {
		_, err := parseScenario([]byte(aroundServices + "tasks: {web: web.json}\nsteps: [{start: [web]}]\n" + text))
		var got []string
		if err != nil {
			got = strings.Split(err.Error(), "\n")
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: -want +got:\n%s", text, d)
		}
	}
}

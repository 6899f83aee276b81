package controlplane_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// shape is a type of botocore's model.
type shape struct {
	Type    string
	Members map[string]struct{ Shape string }
	Member  struct{ Shape string }
}

// dropped returns the members of a shape that a type lacks, with their paths. What a map holds is kept.
func dropped(shapes map[string]shape, name, path string, of reflect.Type) (all []string) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch s := shapes[name]; {
	case s.Type == "list" && of.Kind() == reflect.Slice:
		return dropped(shapes, s.Member.Shape, path, of.Elem())
	case s.Type == "structure" && of.Kind() == reflect.Struct:
		has := controlplane.Members(of)
		for _, key := range slices.Sorted(maps.Keys(s.Members)) {
			if has[key] == nil {
				all = append(all, path+"."+key)
				continue
			}
			all = append(all, dropped(shapes, s.Members[key].Shape, path+"."+key, has[key])...)
		}
	}
	return all
}

// A member that an input lacks is dropped in silence. RegisterTaskDefinition has taskdef's types, whose tests compare
// them with botocore.
func TestNoMemberOfARequestIsDropped(t *testing.T) {
	t.Parallel()
	var model struct {
		Operations map[string]struct{ Input struct{ Shape string } }
		Shapes     map[string]shape
	}
	if err := json.Unmarshal(testkit.ECSModel(t), &model); err != nil {
		t.Fatal(err)
	}
	operations := controlplane.Operations(controlplane.New(controlplane.Options{}))
	// There are no container instances.
	for _, name := range []string{"RegisterTaskDefinition", "StartTask", "ListContainerInstances",
		"DescribeContainerInstances"} {
		delete(operations, name)
	}
	var got []string
	for name := range operations {
		method, ok := reflect.TypeFor[*controlplane.Plane]().MethodByName(strings.TrimSuffix(name, "Settings"))
		if !ok {
			method, _ = reflect.TypeFor[*controlplane.Plane]().MethodByName(name)
		}
		got = append(got, dropped(model.Shapes, model.Operations[name].Input.Shape, name, method.Type.In(2))...)
	}
	testkit.Equal(t, "dropped members", got, nil)
}

func TestMembersThatAreNotEmulatedAreRefused(t *testing.T) {
	t.Parallel()
	w := newFixture(t, begin)
	refused := map[string]string{
		`{"role": "r"}`:                                "role",
		`{"gatewayConnectors": [{}]}`:                  "gatewayConnectors",
		`{"volumeConfigurations": [{}]}`:               "volumeConfigurations",
		`{"vpcLatticeConfigurations": [{}]}`:           "vpcLatticeConfigurations",
		`{"schedulingStrategy": "DAEMON"}`:             "the DAEMON schedulingStrategy",
		`{"monitoring": {"metricConfigurations": []}}`: "monitoring",
	}
	for member, value := range map[string]string{
		"alarms":               `{"alarmNames": ["a"], "enable": true, "rollback": true}`,
		"bakeTimeInMinutes":    "5",
		"lifecycleHooks":       "[{}]",
		"linearConfiguration":  `{"stepPercent": 10}`,
		"canaryConfiguration":  `{"canaryPercent": 10}`,
		"earlySuccessCriteria": `{"enable": true}`,
	} {
		body := fmt.Sprintf(`{"deploymentConfiguration": {%q: %s}}`, member, value)
		refused[body] = "deploymentConfiguration." + member
	}
	for body, what := range refused {
		_, err := w.CreateService(w.call(), input(func(in *shapes.ServiceInput) {
			if err := json.Unmarshal([]byte(body), in); err != nil {
				t.Fatal(err)
			}
		}))
		testkit.WantError[*shapes.Error](t, err,
			"UnsupportedFeatureException: localecs does not have "+what+": leave it out.")
	}
	_, err := w.RunTask(w.call(), shapes.RunTaskInput{VolumeConfigurations: []map[string]any{{}}})
	testkit.WantError[*shapes.Error](t, err,
		"UnsupportedFeatureException: localecs does not have volumeConfigurations: leave it out.")
	made := w.create(func(in *shapes.ServiceInput) { // as tools send what is off
		off := `{"deploymentConfiguration": {"alarms": {"alarmNames": ["a"], "enable": false, "rollback": true},
			"bakeTimeInMinutes": 0, "lifecycleHooks": [],
			"earlySuccessCriteria": {"enable": false, "healthyPercent": 50}}}`
		if err := json.Unmarshal([]byte(off), in); err != nil {
			t.Fatal(err)
		}
	})
	want := shapes.DeploymentConfiguration{
		CircuitBreaker: &shapes.CircuitBreaker{}, MaximumPercent: new(200), MinimumHealthyPercent: new(100),
		Strategy: "ROLLING", Alarms: &shapes.Alarms{Names: []string{"a"}, Rollback: true},
		EarlySuccess: &shapes.EarlySuccess{HealthyPercent: 50},
	}
	if d := cmp.Diff(want, made.DeploymentConfiguration); d != "" {
		t.Errorf("deployment configuration (-want +got):\n%s", d)
	}
	_, err = w.ListTasks(w.call(), shapes.ListTasksInput{DaemonName: "d"})
	testkit.WantError[*shapes.Error](t, err,
		"UnsupportedFeatureException: localecs does not have daemonName: leave it out.")
	managed, err := w.ListServices(w.call(), shapes.ListServicesInput{ManagementType: "ECS"})
	if err != nil {
		t.Fatal(err)
	}
	testkit.Equal(t, "services that ECS manages", len(managed.ServiceARNs), 0)
}

package controlplane_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// The members are those of botocore 1.44.8. What a request type lacks is dropped in silence.
func TestNoMemberOfARequestIsDropped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in      any
		members string
	}{
		{shapes.ServiceInput{}, "cluster serviceName service taskDefinition availabilityZoneRebalancing " +
			"loadBalancers serviceRegistries desiredCount clientToken launchType capacityProviderStrategy " +
			"platformVersion role deploymentConfiguration placementConstraints placementStrategy " +
			"networkConfiguration forceNewDeployment " +
			"healthCheckGracePeriodSeconds schedulingStrategy deploymentController tags enableECSManagedTags " +
			"propagateTags enableExecuteCommand serviceConnectConfiguration volumeConfigurations " +
			"vpcLatticeConfigurations gatewayConnectors monitoring"},
		{shapes.DeploymentConfiguration{}, "deploymentCircuitBreaker maximumPercent minimumHealthyPercent alarms " +
			"strategy bakeTimeInMinutes lifecycleHooks linearConfiguration canaryConfiguration earlySuccessCriteria"},
		{shapes.CreateClusterInput{}, "clusterName cluster tags settings configuration capacityProviders " +
			"defaultCapacityProviderStrategy serviceConnectDefaults"},
		{shapes.ListServiceDeploymentsInput{}, "service cluster status createdAt nextToken maxResults"},
		{shapes.DescribeCapacityProvidersInput{}, "capacityProviders cluster include maxResults nextToken"},
		{shapes.ListAccountSettingsInput{}, "name value principalArn effectiveSettings nextToken maxResults"},
		{shapes.RunTaskInput{}, "capacityProviderStrategy cluster count enableECSManagedTags enableExecuteCommand " +
			"group launchType networkConfiguration overrides placementConstraints placementStrategy platformVersion " +
			"propagateTags referenceId startedBy tags taskDefinition clientToken volumeConfigurations"},
	} {
		has := controlplane.Members(reflect.TypeOf(c.in))
		for name := range strings.FieldsSeq(c.members) {
			if _, ok := has[name]; !ok {
				t.Errorf("%T has no member %s", c.in, name)
			}
		}
	}
}

func TestMembersThatAreNotEmulatedAreRefused(t *testing.T) {
	t.Parallel()
	w := newFixture(t, begin)
	refused := map[string]string{
		`{"role": "r"}`:                                "role",
		`{"gatewayConnectors": [{}]}`:                  "gatewayConnectors",
		`{"volumeConfigurations": [{}]}`:               "volumeConfigurations",
		`{"vpcLatticeConfigurations": [{}]}`:           "vpcLatticeConfigurations",
		`{"serviceRegistries": [{}]}`:                  "serviceRegistries",
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
	w.create(func(in *shapes.ServiceInput) { // as tools send what is off
		off := `{"deploymentConfiguration": {"alarms": {"alarmNames": [], "enable": false, "rollback": false},
			"bakeTimeInMinutes": 0, "lifecycleHooks": [], "earlySuccessCriteria": {"enable": false}}}`
		if err := json.Unmarshal([]byte(off), in); err != nil {
			t.Fatal(err)
		}
	})
}

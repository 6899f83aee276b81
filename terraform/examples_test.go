package terraform_test

import (
	"encoding/json"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/terraform/internal/stub"
	"github.com/meshtask/consul-ecs/terraform/internal/tftest"
)

const (
	clusterARN = "arn:aws:ecs:us-east-1:123456789012:cluster/mesh"
	secretARN  = "arn:aws:secretsmanager:us-east-1:123456789012:secret:mesh-AbCdEf"
)

// consulECS is the image of consul-ecs in tests.
const consulECS = "registry.example.com/consul-ecs:1.0.0-beta.1"

// exampleInputs returns the required variables of each example.
func exampleInputs() map[string]values {
	network := values{
		"vpc_id": "vpc-1", "private_subnets": []string{"subnet-1", "subnet-2"}, "ecs_cluster_arn": clusterARN,
		"consul_ecs_image": consulECS,
	}
	servers := network.with(values{"consul_server_hosts": "consul.example.com", "consul_ca_cert_arn": secretARN})
	federation := network.with(values{
		"public_subnets": []string{"subnet-3", "subnet-4"}, "lb_ingress_rule_cidr_blocks": []string{"192.0.2.0/24"},
		"ecs_cluster_arns": values{"dc1": clusterARN, "dc2": clusterARN + "-2"},
	})
	delete(federation, "ecs_cluster_arn")
	migration := servers.with(values{
		"security_groups": []string{"sg-1"}, "gossip_key_secret_arn": secretARN, "controller_token_arn": secretARN,
	})
	delete(migration, "vpc_id")
	secure := servers.with(values{"controller_token_arn": secretARN, "images": values{"consul_ecs": consulECS}})
	delete(secure, "consul_ecs_image")
	return map[string]values{
		"dev-server-fargate": network,
		"secure-mesh":        secure,
		"mesh-gateways":      federation,
		"api-gateway": servers.with(values{
			"public_subnets": []string{"subnet-3", "subnet-4"}, "mesh_security_group_id": "sg-1",
			"certificate_arn": "arn:aws:acm:us-east-1:123456789012:certificate/1",
		}),
		"migration": migration,
	}
}

// TestExamplesArePlanned plans all of them without a warning; in the long lane it
// applies them as well, with both majors of the provider.
func TestExamplesArePlanned(t *testing.T) {
	t.Parallel()
	inputs := exampleInputs()
	var found []string
	for _, example := range roots(t, "examples/*/versions.tf") {
		found = append(found, path.Base(example))
	}
	if want := slices.Sorted(maps.Keys(inputs)); !slices.Equal(found, want) {
		t.Fatalf("examples %q, want %q", found, want)
	}
	for name, input := range inputs {
		for _, aws := range []stub.AWS{stub.AWS5, stub.AWS6} {
			t.Run(name+"/aws-"+string(aws), func(t *testing.T) {
				t.Parallel()
				if aws == stub.AWS5 {
					testkit.Long(t)
				}
				w := tftest.New(t, "examples/"+name, aws)
				if warnings := w.PlanWarnings(input); len(warnings) > 0 {
					t.Errorf("warnings %q", warnings)
				}
				if testing.Short() {
					return
				}
				w.Apply(input)
				w.Unchanged()
				w.Destroy()
			})
		}
	}
}

// TestOtherPartitionsHaveTheirOwnARNs applies the example in a region of China.
func TestOtherPartitionsHaveTheirOwnARNs(t *testing.T) {
	t.Parallel()
	testkit.Long(t)
	w := tftest.New(t, "examples/secure-mesh", stub.AWS6)
	w.SetRegion("cn-north-1")
	input := values{}
	for name, value := range exampleInputs()["secure-mesh"] {
		if arn, is := value.(string); is {
			value = strings.Replace(strings.Replace(arn, "arn:aws:", "arn:aws-cn:", 1), "us-east-1", "cn-north-1", 1)
		}
		input[name] = value
	}
	state := w.Apply(input)
	foreign := regexp.MustCompile(`arn:aws:[^"]*|[a-z.-]+\.amazonaws\.com[^"]*`)
	for address, attributes := range state.Resources {
		text, err := json.Marshal(attributes)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range foreign.FindAllString(string(text), -1) {
			if strings.Trim(found, `\`) != "ecs-tasks.amazonaws.com" { // the same in all partitions
				t.Errorf("%s has %q", address, found)
			}
		}
	}
	const want = "arn:aws-cn:iam::123456789012:role/consul-ecs/web-task"
	if got := state.Resource("module.web.module.task.aws_iam_role.task[0]")["arn"]; got != want {
		t.Errorf("the task role is %v, want %s", got, want)
	}
}

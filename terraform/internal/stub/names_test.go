package stub

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

func TestNamesHaveTheFormOfAWS(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		resource, attribute, value string
		refused                    bool
	}{
		{"aws_iam_role", "name", strings.Repeat("r", 64), false},
		{"aws_iam_role", "name", strings.Repeat("r", 65), true},
		{"aws_iam_role", "path", "/consul-ecs/", false},
		{"aws_iam_role", "path", "/consul-ecs", true},
		{"aws_iam_role", "assume_role_policy", "{}", false},
		{"aws_iam_role", "assume_role_policy", "{", true},
		{"aws_lb", "name", strings.Repeat("l", 32), false},
		{"aws_lb", "name", strings.Repeat("l", 33), true},
		{"aws_lb", "name", "ends-", true},
		{"aws_lb", "name", "internal-edge", true},
		{"aws_lb_target_group", "name", "internal-edge", false},
		{"aws_vpc_security_group_ingress_rule", "cidr_ipv4", "10.0.0.0/8", false},
		{"aws_vpc_security_group_ingress_rule", "cidr_ipv4", "::/0", true},
		{"aws_vpc_security_group_ingress_rule", "cidr_ipv6", "2001:db8::/32", false},
		{"aws_vpc_security_group_ingress_rule", "cidr_ipv6", "10.0.0.0/8", true},
		{"aws_ecs_task_definition", "family", "a b", true},
		{"aws_ecs_task_definition", "task_role_arn", "role", true},
	} {
		got := checkNames(tt.resource, map[string]tftypes.Value{
			tt.attribute: tftypes.NewValue(tftypes.String, tt.value),
		})
		if (len(got) > 0) != tt.refused {
			t.Errorf("%s.%s = %q: got %v, want refused %v", tt.resource, tt.attribute, tt.value, got, tt.refused)
		}
	}
}

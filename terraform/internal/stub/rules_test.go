package stub

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

func TestEqualSecurityGroupRulesAreRefused(t *testing.T) {
	t.Parallel()
	const ingress, egress = "aws_vpc_security_group_ingress_rule", "aws_vpc_security_group_egress_rule"
	typ := tftypes.Object{AttributeTypes: map[string]tftypes.Type{
		"description": tftypes.String, "security_group_id": tftypes.String, "cidr_ipv4": tftypes.String,
		"from_port": tftypes.Number,
	}}
	rule := func(description, group, block string, port int) tftypes.Value {
		return tftypes.NewValue(typ, map[string]tftypes.Value{
			"description":       tftypes.NewValue(tftypes.String, description),
			"security_group_id": tftypes.NewValue(tftypes.String, group),
			"cidr_ipv4":         tftypes.NewValue(tftypes.String, block),
			"from_port":         tftypes.NewValue(tftypes.Number, port),
		})
	}
	none := tftypes.NewValue(typ, nil)
	clients := rule("clients", "sg-1", "10.0.1.0/24", 8443)
	var r rules
	for _, step := range []struct {
		name, typ      string
		prior, planned tftypes.Value
		refused        bool
	}{
		{"first", ingress, none, clients, false},
		{"equal but for the description", ingress, none, rule("health", "sg-1", "10.0.1.0/24", 8443), true},
		{"another direction", egress, none, clients, false},
		{"another group", ingress, none, rule("clients", "sg-2", "10.0.1.0/24", 8443), false},
		{"another block", ingress, none, rule("clients", "sg-1", "10.0.2.0/24", 8443), false},
		{"another port", ingress, none, rule("clients", "sg-1", "10.0.1.0/24", 8444), false},
		{"updated in place", ingress, clients, rule("all clients", "sg-1", "10.0.1.0/24", 8443), false},
		{"deleted", ingress, clients, none, false},
		{"created again", ingress, none, clients, false},
	} {
		found := r.apply(step.typ, step.prior, step.planned)
		if refused := len(found) == 1 && strings.Contains(found[0].Detail,
			"InvalidPermission.Duplicate"); refused != step.refused {
			t.Errorf("%s: %v, want refused %v", step.name, found, step.refused)
		}
	}
}

package stub

import (
	"fmt"
	"sync"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// ruleMembers are the attributes by which EC2 distinguishes the rules of a security group.
var ruleMembers = []string{
	"security_group_id", "ip_protocol", "from_port", "to_port",
	"cidr_ipv4", "cidr_ipv6", "prefix_list_id", "referenced_security_group_id",
}

// rules are the security group rules that exist, by what distinguishes them for EC2.
type rules struct {
	mu    sync.Mutex
	exist map[string]bool
}

// apply replaces a rule, and refuses one that equals another of its group. Resources of
// other types are ignored.
func (r *rules) apply(typ string, prior, planned tftypes.Value) []*tfprotov5.Diagnostic {
	if typ != "aws_vpc_security_group_ingress_rule" && typ != "aws_vpc_security_group_egress_rule" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !prior.IsNull() {
		delete(r.exist, ruleKey(typ, prior))
	}
	if planned.IsNull() {
		return nil
	}
	key := ruleKey(typ, planned)
	if r.exist[key] {
		return []*tfprotov5.Diagnostic{
			problem("security_group_id", "InvalidPermission.Duplicate: the security group has this rule already: %s",
				key),
		}
	}
	if r.exist == nil {
		r.exist = map[string]bool{}
	}
	r.exist[key] = true
	return nil
}

func ruleKey(typ string, v tftypes.Value) string {
	var members map[string]tftypes.Value
	must(v.As(&members))
	key := typ
	for _, name := range ruleMembers {
		if m := members[name]; m.IsKnown() && !m.IsNull() {
			key += fmt.Sprintf(" %s=%v", name, api(m))
		}
	}
	return key
}

package stub

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// patterns are what the real provider or the API demands of an attribute; the npm
// packages do not carry them.
var patterns = map[string]map[string]*regexp.Regexp{
	"aws_iam_role": {
		"name":                 regexp.MustCompile(`^[\w+=,.@-]{1,64}$`),
		"path":                 rolePath,
		"permissions_boundary": arnForm,
	},
	"aws_iam_policy":          {"name": policyName, "path": rolePath},
	"aws_iam_role_policy":     {"name": policyName},
	"aws_ecs_task_definition": {"family": ecsName, "task_role_arn": arnForm, "execution_role_arn": arnForm},
	"aws_ecs_service":         {"name": ecsName},
	"aws_ecs_cluster":         {"name": ecsName},
	"aws_lb":                  {"name": loadBalancerName},
	"aws_lb_target_group":     {"name": loadBalancerName},
	"aws_security_group": {
		"name":        regexp.MustCompile(`^[\w .:/()#,@\[\]+=&;{}!$*-]{1,255}$`),
		"description": regexp.MustCompile(`^[\w .:/()#,@\[\]+=&;{}!$*-]{0,255}$`),
	},
	"aws_vpc_security_group_ingress_rule": {"cidr_ipv4": ipv4Block, "cidr_ipv6": ipv6Block},
	"aws_vpc_security_group_egress_rule":  {"cidr_ipv4": ipv4Block, "cidr_ipv6": ipv6Block},
	"aws_secretsmanager_secret":           {"name": regexp.MustCompile(`^[\w/+=.@-]{1,512}$`)},
	"aws_cloudwatch_log_group":            {"name": regexp.MustCompile(`^[\w./#-]{1,512}$`)},
}

var (
	arnForm          = regexp.MustCompile(`^arn:[\w-]+:[\w.-]+:[\w-]*:\d{12}:.+`)
	ecsName          = regexp.MustCompile(`^[\w-]{1,255}$`)
	rolePath         = regexp.MustCompile(`^/([\x21-\x7e]+/)?$`)
	ipv4Block        = regexp.MustCompile(`^\d+(\.\d+){3}/\d+$`)
	ipv6Block        = regexp.MustCompile(`^[0-9A-Fa-f]*:[0-9A-Fa-f:.]*/\d+$`)
	policyName       = regexp.MustCompile(`^[\w+=,.@-]{1,128}$`)
	loadBalancerName = regexp.MustCompile(`^[0-9A-Za-z]([0-9A-Za-z-]{0,30}[0-9A-Za-z])?$`)
)

// documents are attributes that hold JSON.
var documents = map[string]string{
	"aws_iam_role": "assume_role_policy", "aws_iam_policy": "policy", "aws_iam_role_policy": "policy",
}

// checkNames reports attributes whose form AWS refuses.
func checkNames(typ string, m map[string]tftypes.Value) (out []*tfprotov5.Diagnostic) {
	f := faker{obj: m}
	for attr, form := range patterns[typ] {
		if v := f.str(attr); v != "" && !form.MatchString(v) {
			out = append(out, problem(attr, "%s: %q does not match %s", typ, v, form))
		}
	}
	if name := f.str("name"); typ == "aws_lb" && strings.HasPrefix(name, "internal-") {
		out = append(out, problem("name", "%s: %q begins with \"internal-\"", typ, name))
	}
	if attr := documents[typ]; attr != "" && f.str(attr) != "" && !json.Valid([]byte(f.str(attr))) {
		out = append(out, problem(attr, "%s: %s is not JSON", typ, attr))
	}
	return out
}

package setup

import (
	"errors"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// DefaultRolePath is the path of the IAM roles that may log in, as Terraform's
// modules make them.
const DefaultRolePath = "/consul-ecs/"

// Principal returns the ARN pattern of the roles that may log in: all at or below
// path in the account and AWS partition of the cluster, or with whole every
// role of the account. Slashes around the path do not count. An empty path
// without whole is refused: who may make any role could be any service.
func Principal(cluster, path string, whole bool) (string, error) {
	prefix, err := accountRoles(cluster)
	path, pathErr := rolePath(path, whole)
	if err := errors.Join(err, pathErr); err != nil {
		return "", &retry.PermanentError{Err: err}
	}
	return prefix + path + "*", nil
}

// accountRoles returns the prefix of the ARNs of all roles of the cluster's
// account: "arn:aws:iam::123456789012:role/".
func accountRoles(cluster string) (string, error) {
	a, err := arn.Parse(cluster)
	if err != nil || a.Service != "ecs" || a.AccountID == "" || !strings.HasPrefix(a.Resource, "cluster/") {
		return "", exit.Usagef("cluster %q: want the ARN of an ECS cluster", cluster)
	}
	return "arn:" + a.Partition + ":iam::" + a.AccountID + ":role/", nil
}

// rolePath returns the path without its first slash, or empty for the whole account.
// IAM's rules are those of the Path parameter in its API reference.
func rolePath(path string, whole bool) (string, error) {
	trimmed := strings.Trim(path, "/")
	switch {
	case whole && (trimmed == "" || "/"+trimmed+"/" == DefaultRolePath):
		return "", nil
	case whole:
		return "",
			exit.Usagef("role path %q and trust in the whole account: give the path or -trust-whole-account, not both",
				path)
	case trimmed == "":
		return "",
			exit.Usagef("role path %q: it would trust every role of the account; give one such as %s, or "+
				"-trust-whole-account if that is what you want", path, DefaultRolePath)
	case len(trimmed)+2 > 512:
		return "", exit.Usagef("role path of %d characters: IAM allows 512", len(trimmed)+2)
	case strings.Contains(trimmed, "//"):
		return "", exit.Usagef("role path %q: it has an empty part", path)
	case !regexp.MustCompile(`^[!-)+->@-~]+$`).MatchString(trimmed):
		return "", exit.Usagef("role path %q: want printable ASCII without spaces, * and ?", path)
	}
	return trimmed + "/", nil
}

// PartitionOption checks the Enterprise options against each other and returns
// the partition to use: empty when partitions are off.
func PartitionOption(enabled bool, name string) (string, error) {
	switch {
	case !enabled && name != "":
		return "",
			exit.Usagef("partition %q: give -partitions-enabled, or controller.partitionsEnabled in the "+
				"configuration, too", name)
	case !enabled:
		return "", nil
	case name == "":
		return defaultPartition, nil
	case !regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]{0,62}[a-zA-Z0-9])?$`).MatchString(name):
		return "", exit.Usagef("partition %q: want at most 64 letters, digits and hyphens, not at its ends", name)
	}
	return name, nil
}

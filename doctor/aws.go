package doctor

import (
	"context"
	"fmt"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/config"
)

// Identity checks that AWS knows the task's identity, by the request of a login to Consul.
func Identity(identity func(context.Context) (arn string, err error)) Check {
	return Check{"AWS identity", identity}
}

// Role checks that the task role may read itself, and that its tag names the service. service is empty for a gateway,
// which has no tag.
func Role(service string, read func(context.Context) (awsutil.Role, error)) Check {
	return Check{"task role", func(ctx context.Context) (string, error) {
		role, err := read(ctx)
		if err != nil {
			return "", err
		}
		tag, tagged := role.Tags[config.TagServiceName]
		switch {
		case service == "":
			return role.ARN, nil
		case !tagged:
			return "", fmt.Errorf("the role %s has no tag %s: invalid bind name: want %q", role.ARN,
				config.TagServiceName, service)
		case tag != service:
			return "", fmt.Errorf("the role %s has the tag %s=%s: the token needs a service identity for %q", role.ARN,
				config.TagServiceName, tag, service)
		}
		return fmt.Sprintf("%s, tagged %s=%s", role.ARN, config.TagServiceName, tag), nil
	}}
}

// WithoutLogin skips the checks of AWS.
func WithoutLogin() []Check {
	skip := func(context.Context) (string, error) { return "", Skipf("consulLogin.enabled is false") }
	return []Check{{"AWS identity", skip}, {"task role", skip}}
}

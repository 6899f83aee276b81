package broker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/meshtask/consul-ecs/aclrules"
)

// UnderCeiling reads Consul policies and returns an error unless all exist and none
// grants write on acl, keyring or operator, which amounts to more than it says.
func UnderCeiling(ctx context.Context, get aclrules.Policies, names []string) error {
	for _, name := range names {
		p, err := get.Policy(ctx, aclrules.Link{Name: name})
		if errors.Is(err, aclrules.ErrDangling) {
			return refuse(http.StatusUnprocessableEntity, "policies", "policy %q does not exist", name)
		}
		if err != nil {
			return later(http.StatusServiceUnavailable, "consul", busyPause, "read policy %q: %v", name, err)
		}
		if err := belowCeiling(p); err != nil {
			return refuse(http.StatusUnprocessableEntity, "ceiling", "policy %q: %v", name, err)
		}
	}
	return nil
}

func belowCeiling(p aclrules.Policy) error {
	if p.ID == aclrules.ManagementID {
		return errors.New("it grants everything")
	}
	parsed, err := aclrules.Parse(p.Rules)
	if err != nil {
		return fmt.Errorf("its rules cannot be read: %w", err)
	}
	unknown, err := aclrules.UnknownKeys(p.Rules)
	if err != nil {
		return fmt.Errorf("its rules cannot be read: %w", err)
	}
	for _, u := range unknown {
		switch strings.ToLower(u.Key) {
		case "namespace", "namespace_prefix", "partition", "partition_prefix":
			return fmt.Errorf("it has rules in a %s block, which may grant write on acl: give tokens a policy of their own namespace", u.Key)
		}
	}
	for _, r := range parsed.Rules {
		level, _ := aclrules.LevelOf(r.Level)
		if level != aclrules.LevelWrite {
			continue
		}
		switch r.Resource {
		case aclrules.ACL, aclrules.Keyring, aclrules.Operator:
			return fmt.Errorf("it grants %s, which no token of this broker may have", r.HCL())
		}
	}
	return nil
}

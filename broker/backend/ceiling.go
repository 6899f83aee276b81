package backend

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/meshtask/consul-ecs/aclrules"
)

// Policies reads Consul policies; the error of one that does not exist matches
// aclrules.ErrDangling.
type Policies interface {
	Policy(ctx context.Context, l aclrules.Link) (aclrules.Policy, error)
}

// CheckCeiling reads Consul policies and returns an error unless all exist, none grants write
// on acl, keyring or operator, which amounts to more than it seems, and all together grant
// nothing that the policy named ceiling does not; without a name there is no such policy.
func CheckCeiling(ctx context.Context, get Policies, ceiling string, names []string) error {
	var wanted []aclrules.Policy
	for _, name := range names {
		p, err := get.Policy(ctx, aclrules.Link{Name: name})
		if errors.Is(err, aclrules.ErrDangling) {
			return missingPolicy(name)
		}
		if err != nil {
			return unread(name, err)
		}
		if err := withoutEscalation(p); err != nil {
			return refused(fmt.Sprintf("policy %q", name), fmt.Errorf("%w: %w", ErrPolicy, err), "")
		}
		wanted = append(wanted, p)
	}
	if ceiling == "" {
		return nil
	}
	p, err := get.Policy(ctx, aclrules.Link{Name: ceiling})
	if err != nil {
		return unread(ceiling, err)
	}
	p.Datacenters = nil // it is a limit everywhere
	most := reportOf(ctx, p)
	if err := most.Problems(); err != nil {
		return refused("use the ceiling", err, "correct the rules of the policy")
	}
	if excess := aclrules.Covers(most, reportOf(ctx, wanted...)); len(excess) > 0 {
		op := fmt.Sprintf("policies %s", strings.Join(names, ", "))
		return refused(op, fmt.Errorf("%w: they grant more than policy %q, the ceiling: %v", ErrPolicy, ceiling,
			excess[0]), "")
	}
	return nil
}

// unread returns the error of a policy that exists or should, and cannot be read.
func unread(name string, err error) error {
	op := fmt.Sprintf("read policy %q", name)
	switch {
	case errors.Is(err, aclrules.ErrDangling):
		return refused(op, err, "create it, or start the broker with another -ceiling-policy")
	case errors.Is(err, aclrules.ErrUnreadable):
		return refused(op, err, `give the broker's token a policy with acl = "read"`)
	}
	return consulError(op, err, "")
}

// reportOf returns what policies grant together where all others are denied.
func reportOf(ctx context.Context, policies ...aclrules.Policy) *aclrules.Report {
	return aclrules.NewReport(aclrules.Resolver{}.Resolve(ctx, aclrules.Subject{Policies: policies}), aclrules.Denied)
}

// withoutEscalation returns an error for a policy that grants more than it says, or may.
func withoutEscalation(p aclrules.Policy) error {
	if p.ID == aclrules.ManagementID {
		return errors.New("it grants everything")
	}
	rules, err := aclrules.Parse(p.Rules)
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
	for _, r := range rules {
		level, _ := aclrules.LevelOf(r.Level)
		if level != aclrules.LevelWrite {
			continue
		}
		why := aclrules.Escalation(aclrules.Rule{Resource: r.Resource, Level: level.String()})
		if r.Resource == aclrules.Keyring {
			why = "its holder can replace the key of the servers' gossip"
		}
		if why != "" {
			return fmt.Errorf("it grants %s, which no token of this broker may have: %s", r.HCL(), why)
		}
	}
	return nil
}

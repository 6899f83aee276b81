package backend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/consulutil"
)

// ACLBackend creates tokens. The client's token needs acl = "write", which is every privilege.
type ACLBackend struct {
	Client *api.Client
	// GrantTTL is how long a grant can be redeemed: GrantTTL if 0.
	GrantTTL time.Duration

	grants grants
}

var _ Backend = (*ACLBackend)(nil)

// aclRemedy is for refusals of the broker's token.
const aclRemedy = `give the broker's token a policy with acl = "write", or use backend consul-login, which needs none`

// Issue reads the policies and chooses the accessor.
func (a *ACLBackend) Issue(ctx context.Context, r Request) (Grant, error) {
	if err := r.check(true); err != nil {
		return Grant{}, err
	}
	for _, name := range r.Policies {
		policy, _, err := a.Client.ACL().PolicyReadByName(name, (&api.QueryOptions{}).WithContext(ctx))
		switch {
		case err != nil:
			return Grant{}, consulError(fmt.Sprintf("read policy %q", name), err, aclRemedy)
		case policy == nil:
			return Grant{}, missingPolicy(name)
		}
		if err := checkName(name, policy.Name); err != nil {
			return Grant{}, err
		}
	}
	return a.grants.issue(r, uuid.NewString(), a.GrantTTL), nil
}

func missingPolicy(name string) error {
	return unavailablePolicy(name, "create it with: consul acl policy create -name "+name+" -rules @FILE")
}

// Redeem creates the token with the grant's accessor.
func (a *ACLBackend) Redeem(ctx context.Context, g Grant) (Token, error) {
	create := func(ctx context.Context) (Token, error) { return a.create(ctx, g) }
	return a.grants.redeem(ctx, g, create, a.Revoke)
}

func (a *ACLBackend) create(ctx context.Context, g Grant) (Token, error) {
	r := g.Request
	description, err := json.Marshal(origin(r))
	if err != nil {
		return Token{}, err
	}
	wanted := &api.ACLToken{
		AccessorID: g.Accessor, Local: true, Description: "broker: " + string(description), ExpirationTTL: r.TTL,
	}
	for _, name := range r.Policies {
		wanted.Policies = append(wanted.Policies, &api.ACLLink{Name: name})
	}
	op := fmt.Sprintf("create the token of task %s", r.Task.ARN)
	start := time.Now()
	t, _, err := a.Client.ACL().TokenCreate(wanted, (&api.WriteOptions{}).WithContext(ctx))
	switch reason := consulutil.Reason(err); {
	case err == nil:
		return newToken(t, start), nil
	case strings.Contains(reason, "AccessorID is already in use"):
		// An earlier attempt made the token, and its answer with the secret was lost.
		lost := refused(op, ErrUsed, "the task must request a token again")
		return Token{}, errors.Join(lost, a.Revoke(ctx, g.Accessor))
	case strings.Contains(reason, "No such ACL policy"):
		_, name, _ := strings.Cut(reason, "with name ")
		return Token{}, missingPolicy(strings.Trim(name, `"`))
	}
	return Token{}, consulError(op, err, aclRemedy)
}

// origin returns what a token's description records about its task.
func origin(r Request) map[string]string {
	return map[string]string{"task": r.Task.ARN, "cluster": r.Task.Cluster, "request": r.RequestID}
}

// Revoke deletes the token of an accessor. Without a token there is nothing to ask Consul for,
// which refuses the request if it has refused to make the token.
func (a *ACLBackend) Revoke(ctx context.Context, accessor string) error {
	if !a.grants.revoke(accessor) {
		return nil
	}
	return deleteToken(ctx, a.Client, accessor, aclRemedy)
}

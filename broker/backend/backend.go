package backend

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/meshtask/consul-ecs/internal/secret"
)

// The names of the backends, as the broker's configuration has them.
const (
	ConsulLogin = "consul-login"
	ConsulACL   = "consul-acl"
	Vault       = "vault"
)

// Request is what a task gets a token for; the broker has verified it.
type Request struct {
	// RequestID identifies the request in logs and in the token's description.
	RequestID string
	Task      Task
	// Policies are the names of the token's policies, at least one.
	Policies []string
	// TTL is the life of a Consul token, 0 for one without expiry (consul-acl), and the period
	// of a Vault token.
	TTL time.Duration
}

// Task is the ECS task that the token is for, as ECS describes it.
type Task struct {
	ARN, Cluster, Family string
	Revision             int
	Address              netip.Addr
	AvailabilityZone     string
	// Name is what a person calls the task: the family, or the service.
	Name string
}

// Grant is a promise of a token. Who has one has no access yet, except through the
// process that issued it or through Handle.
type Grant struct {
	Request Request
	// Accessor is what Revoke takes. With consul-login Consul chooses the
	// accessor at redemption: there it names the grant only, and Token has another.
	Accessor string
	// Handle is the backend's own wrapping token (vault), or empty.
	Handle secret.Value
	// Expires is when Redeem refuses the grant.
	Expires time.Time
}

// Token is a token of a backend. Everything but Secret may be logged.
type Token struct {
	Secret   secret.Value
	Accessor string
	Policies []string
	// Expires is by the clock of this process, and zero for a token without expiry. A renewal
	// moves that of a renewable token.
	Expires time.Time
	// Period is how much life a renewal gives (vault), or 0 for a token that has to be
	// replaced before it expires.
	Period time.Duration
}

// Backend is a system that gives tokens, in two steps. Its methods are safe for concurrent
// use and bound the time of each request.
type Backend interface {
	// Issue promises a token. With Consul nothing is made yet.
	Issue(ctx context.Context, r Request) (Grant, error)
	// Redeem gives the token of a grant: once, before it expires, and unless it was
	// revoked. A *Error that is not Permanent leaves the grant as it was.
	Redeem(ctx context.Context, g Grant) (Token, error)
	// Revoke destroys the token of an accessor, or the grant if it was not redeemed.
	// A token that is gone already is a success.
	Revoke(ctx context.Context, accessor string) error
}

// Renewer is a Backend whose tokens are renewed by their holders.
type Renewer interface {
	// Expiry returns when the token of an accessor expires. It returns false for a token
	// that does not exist: not redeemed, expired or revoked.
	Expiry(ctx context.Context, accessor string) (time.Time, bool, error)
}

// Adopter is a Backend that needs the secret of a token to revoke it. A process that did not
// make the token learns the secret from its holder.
type Adopter interface {
	// Adopt remembers a token until it expires.
	Adopt(t Token)
}

// GrantTTL is how long a grant can be redeemed.
const GrantTTL = 2 * time.Minute

// check reports what makes a request unusable for a backend. withoutExpiry permits a TTL
// of 0.
func (r Request) check(withoutExpiry bool) error {
	op := fmt.Sprintf("issue the token of task %s", r.Task.ARN)
	switch {
	case len(r.Policies) == 0:
		return refused(op, errors.New("no policies"), "")
	case r.TTL < time.Minute && (r.TTL != 0 || !withoutExpiry):
		return refused(op, fmt.Errorf("ttl %s is less than 1m", r.TTL), "")
	}
	return nil
}

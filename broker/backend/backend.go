package backend

import (
	"cmp"
	"context"
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
	// Namespace is that of Consul Enterprise or Vault Enterprise, or empty. A broker
	// makes tokens in one.
	Namespace string
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
	// Accessor is what Revoke and Lookup take. With consul-login Consul chooses the
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
	// Backend is the name of the backend that made the token.
	Backend  string
	Policies []string
	// Expires is by the clock of this process if it made the token, and by that of Consul's
	// servers in the answer of a Lookup. A renewable token has it moved by a renewal. It is
	// zero for a token without expiry.
	Expires time.Time
	// Period is how much life a renewal gives (vault), or 0 for a token that has to be
	// replaced before it expires.
	Period time.Duration
}

// Issuer makes tokens in two steps.
type Issuer interface {
	// Issue promises a token. With Consul nothing is made yet.
	Issue(ctx context.Context, r Request) (Grant, error)
	// Redeem gives the token of a grant: once, before it expires, and unless it was
	// revoked. A *Error that is not Permanent leaves the grant as it was.
	Redeem(ctx context.Context, g Grant) (Token, error)
}

// Keeper looks after tokens that were issued.
type Keeper interface {
	// Revoke destroys the token of an accessor, or the grant if it was not redeemed.
	// A token that is gone already is a success.
	Revoke(ctx context.Context, accessor string) error
	// Lookup returns the token of an accessor without its secret. It returns false for a
	// token that does not exist: not redeemed, expired or revoked.
	Lookup(ctx context.Context, accessor string) (Token, bool, error)
}

// Adopter is a Keeper that needs the secret of a token to revoke it. A process that did not
// make the token learns the secret from its holder.
type Adopter interface {
	// Adopt remembers a token until it expires.
	Adopt(t Token)
}

// Backend is a system that gives tokens. Its methods are safe for concurrent use and
// bound the time of each request.
type Backend interface {
	Issuer
	Keeper
	// Name is one of the constants above.
	Name() string
}

// GrantTTL is how long a grant can be redeemed.
const GrantTTL = 2 * time.Minute

// check reports what makes a request unusable for a backend. The namespace is the one in
// which the backend makes tokens, or empty; withoutExpiry permits a TTL of 0.
func (r Request) check(namespace string, withoutExpiry bool) error {
	op := fmt.Sprintf("issue the token of task %s", r.Task.ARN)
	switch {
	case len(r.Policies) == 0:
		return refused(op, errNoPolicies, "")
	case r.TTL < time.Minute && (r.TTL != 0 || !withoutExpiry):
		return refused(op, fmt.Errorf("ttl %s is less than 1m", r.TTL), "")
	case cmp.Or(r.Namespace, "default") != cmp.Or(namespace, "default"):
		return refused(op, fmt.Errorf("namespace %q is not that of the broker, %q", r.Namespace, namespace), "")
	}
	return nil
}

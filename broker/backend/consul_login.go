package backend

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/secret"
)

// LoginMethod is a JWT auth method of Consul that trusts the broker's key.
type LoginMethod struct {
	Name string
	// TTL is its MaxTokenTTL: Consul gives every token of a method the same life.
	TTL time.Duration
}

// LoginBackend logs in for tasks. Consul's binding rules decide which policies a token has, and
// the broker needs no privilege. Which policies exist becomes known at redemption only.
//
// A token without privilege over others can be revoked by its own secret alone, so the
// secrets of live tokens stay in memory. After a restart, Revoke of earlier tokens needs
// acl = "write" for the client's token, until the holder has shown the secret (Adopt).
type LoginBackend struct {
	Client *api.Client
	// Methods have different TTLs. A request is served by the longest that is not longer
	// than it asks for.
	Methods []LoginMethod
	Key     ed25519.PrivateKey
	// GrantTTL is how long a grant can be redeemed: GrantTTL if 0.
	GrantTTL time.Duration

	grants grants
	mu     sync.Mutex
	made   expiring[*Token] // by the accessors of grant and token; without secret if revoked
}

var (
	_ Backend = (*LoginBackend)(nil)
	_ Adopter = (*LoginBackend)(nil)
)

const loginRemedy = `another process has made it, or this one before a restart: it ends with the auth method's MaxTokenTTL; delete it before with: consul acl token delete -accessor-id ACCESSOR, or give the broker's token a policy with acl = "write"`

// grantPrefix distinguishes the accessor of a grant from Consul's, which is a UUID.
const grantPrefix = "grant-"

// Issue checks that an auth method can serve the request.
func (l *LoginBackend) Issue(_ context.Context, r Request) (Grant, error) {
	if err := r.check(false); err != nil {
		return Grant{}, err
	}
	if _, err := l.method(r); err != nil {
		return Grant{}, err
	}
	return l.grants.issue(r, grantPrefix+uuid.NewString(), l.GrantTTL), nil
}

func (l *LoginBackend) method(r Request) (LoginMethod, error) {
	var best LoginMethod
	for _, m := range l.Methods {
		if m.TTL <= r.TTL && m.TTL > best.TTL {
			best = m
		}
	}
	if best.Name == "" {
		return best, refused(fmt.Sprintf("choose the auth method for task %s", r.Task.ARN),
			fmt.Errorf("%w: none has tokens of %s or less", ErrTTL, r.TTL),
			"raise the ttl of the task definition, or configure an auth method whose MaxTokenTTL is not more")
	}
	return best, nil
}

// Redeem logs in and checks that Consul gave exactly what was requested.
func (l *LoginBackend) Redeem(ctx context.Context, g Grant) (Token, error) {
	create := func(ctx context.Context) (Token, error) {
		method, err := l.method(g.Request)
		if err != nil {
			return Token{}, err
		}
		return l.login(ctx, method, g)
	}
	return l.grants.redeem(ctx, g, create, l.Revoke)
}

func (l *LoginBackend) login(ctx context.Context, method LoginMethod, g Grant) (Token, error) {
	op := fmt.Sprintf("log in with auth method %q for task %s", method.Name, g.Request.Task.ARN)
	start := time.Now()
	jwt, err := signJWT(l.Key, g, start)
	if err != nil {
		return Token{}, refused(op, err, "")
	}
	params := &api.ACLLoginParams{AuthMethod: method.Name, BearerToken: jwt, Meta: origin(g.Request)}
	t, _, err := l.Client.ACL().Login(params, (&api.WriteOptions{}).WithContext(ctx))
	if err != nil {
		return Token{}, explainLogin(op, method.Name, g.Request.Policies, err)
	}
	token := newToken(t, start)
	l.remember(g.Accessor, token) // before the logout, which may fail: the broker revokes it then
	if err := checkToken(op, method, g.Request, t, token.Policies); err != nil {
		return Token{}, errors.Join(err, consulutil.Logout(ctx, l.Client, t.SecretID))
	}
	return token, nil
}

// checkToken compares a token with the request.
func checkToken(op string, method LoginMethod, r Request, t *api.ACLToken, policies []string) error {
	var missing []string
	for _, p := range r.Policies {
		if !slices.Contains(policies, p) {
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		return notBound(method.Name, missing)
	}
	for _, p := range policies {
		if !slices.Contains(r.Policies, p) {
			return refused(op, fmt.Errorf("the token has policy %q, which was not requested", p),
				"give the binding rule a selector such as "+selector(p))
		}
	}
	switch {
	case len(t.Roles)+len(t.ServiceIdentities)+len(t.NodeIdentities)+len(t.TemplatedPolicies) > 0:
		return refused(op, errors.New("the token has roles or identities, which were not requested"),
			"delete the auth method's binding rules whose bind type is not policy")
	case t.ExpirationTime == nil || t.ExpirationTime.Sub(t.CreateTime) > method.TTL+time.Second:
		return refused(op, fmt.Errorf("the token lives longer than %s", method.TTL),
			fmt.Sprintf("set MaxTokenTTL of the auth method to %s", method.TTL))
	}
	return nil
}

// selector returns that of the binding rule of a policy.
func selector(policy string) string { return fmt.Sprintf(`'"%s" in list.policies'`, policy) }

// notBound returns the error of policies that a method does not give. A policy that does not
// exist and one without a binding rule have the same answer.
func notBound(method string, policies []string) error {
	first := policies[0]
	return unavailablePolicy(strings.Join(policies, `", "`), fmt.Sprintf(
		"create the policy, and a binding rule with: consul acl binding-rule create -method %s -bind-type policy -bind-name %s -selector %s", method, first, selector(first)))
}

// explainLogin adds a remedy to the refusal of a login, by Consul's text.
func explainLogin(op, method string, policies []string, err error) error {
	switch reason := consulutil.Reason(err); {
	case strings.Contains(reason, "ACL not found: auth method"):
		return refused(op, err, "create the auth method as docs/TOKENS.md shows")
	case strings.Contains(reason, "no known key"):
		return refused(op, err,
			"put the public key of the broker's key file into JWTValidationPubKeys of the auth method")
	case strings.Contains(reason, "error validating claims"):
		return refused(op, err,
			fmt.Sprintf("set BoundIssuer %q and BoundAudiences %q of the auth method, and compare the clocks of the broker and the Consul servers", jwtIssuer, jwtAudience))
	case strings.Contains(reason, "Permission denied"):
		return notBound(method, policies)
	}
	return consulError(op, err, "")
}

func (l *LoginBackend) remember(grant string, t Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.made.purge(func(t *Token) bool { return !now.Before(t.Expires) })
	l.made.all[grant], l.made.all[t.Accessor] = &t, &t
}

// Adopt implements Adopter. A token that this process has made, or has revoked,
// stays as it is.
func (l *LoginBackend) Adopt(t Token) {
	if _, known := l.known(t.Accessor); !known {
		l.remember(t.Accessor, t)
	}
}

func (l *LoginBackend) known(accessor string) (Token, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.made.all[accessor]; t != nil {
		return *t, true
	}
	return Token{}, false
}

// Revoke logs the token out, or deletes it if this process did not make it.
func (l *LoginBackend) Revoke(ctx context.Context, accessor string) error {
	l.grants.revoke(accessor)
	t, known := l.known(accessor)
	switch {
	case known && t.Secret.Empty(), !known && strings.HasPrefix(accessor, grantPrefix):
		return nil
	case !known:
		return deleteToken(ctx, l.Client, accessor, loginRemedy)
	}
	if err := consulutil.Logout(ctx, l.Client, t.Secret.Reveal()); err != nil {
		return notRevoked(consulError(fmt.Sprintf("revoke the token with accessor %s", t.Accessor), err, ""))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if made := l.made.all[accessor]; made != nil {
		made.Secret = secret.Value{}
	}
	return nil
}

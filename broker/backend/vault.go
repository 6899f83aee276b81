package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/meshtask/consul-ecs/internal/secret"
)

// vaultRemedy is for refusals of the broker's token.
const vaultRemedy = "give the broker's Vault token the policy and the token role that docs/TOKENS.md shows, or replace it if it has expired"

// VaultRole is the token role that docs/TOKENS.md sets up.
const VaultRole = "token-broker"

// VaultBackend makes tokens with the broker's own Vault token, by a token role that bounds
// their policies.
type VaultBackend struct {
	Client *VaultClient
	// Role is the token role: VaultRole if empty.
	Role string
	// Token returns the broker's token; it is called for every request, so that the
	// token can be replaced.
	Token func() (secret.Value, error)
	// GrantTTL is how long a grant can be redeemed: GrantTTL if 0.
	GrantTTL time.Duration
}

var (
	_ Backend = (*VaultBackend)(nil)
	_ Renewer = (*VaultBackend)(nil)
)

// Issue creates the token behind a wrapping token, which is the grant's handle. A grant
// that is not redeemed has to be revoked: the end of the wrapping token does not end
// the token inside.
func (b *VaultBackend) Issue(ctx context.Context, r Request) (Grant, error) {
	if err := r.check(false); err != nil {
		return Grant{}, err
	}
	for _, policy := range r.Policies {
		if err := b.checkPolicy(ctx, policy); err != nil {
			return Grant{}, err
		}
	}
	ttl := cmp.Or(b.GrantTTL, GrantTTL)
	expires := time.Now().Add(ttl)
	op := fmt.Sprintf("create the Vault token of task %s", r.Task.ARN)
	// An answer that is not read would leave a token that cannot be revoked.
	answer, err := b.do(context.WithoutCancel(ctx), vaultCall{
		method: http.MethodPost, path: "auth/token/create/" + url.PathEscape(cmp.Or(b.Role, VaultRole)), wrap: ttl,
		body: tokenOf(r),
	})
	switch {
	case refusesCreation(err):
		return Grant{}, refused(op, fmt.Errorf("%w: %w", ErrPrivilege, err), vaultRemedy)
	case vaultStatus(err) == http.StatusBadRequest:
		return Grant{}, notYet(op, err)
	case err != nil:
		return Grant{}, vaultError(op, err, vaultRemedy)
	case answer.WrapInfo == nil || answer.WrapInfo.Token.Empty():
		return Grant{}, refused(op, errors.New("the answer is not wrapped"), "")
	}
	return Grant{Request: r, Accessor: answer.WrapInfo.WrappedAccessor, Handle: answer.WrapInfo.Token,
		Expires: expires}, nil
}

// tokenOf returns the body that creates the token of a request.
func tokenOf(r Request) any {
	return map[string]any{
		"policies":     r.Policies,
		"period":       strconv.FormatInt(wholeSeconds(r.TTL), 10) + "s",
		"renewable":    true,
		"display_name": r.Task.Name,
		"meta": map[string]string{
			"task_arn": r.Task.ARN, "cluster": r.Task.Cluster, "task_ip": r.Task.Address.String(),
			"family": r.Task.Family, "revision": strconv.Itoa(r.Task.Revision),
			"az": r.Task.AvailabilityZone, "request_id": r.RequestID,
		},
	}
}

// checkPolicy exists because Vault creates tokens with policies that do not exist.
func (b *VaultBackend) checkPolicy(ctx context.Context, policy string) error {
	if FoldName(policy) == "root" {
		return unavailablePolicy(policy, "the root policy is never given to a task")
	}
	answer, err := b.do(ctx, vaultCall{method: http.MethodGet, path: "sys/policies/acl/" + url.PathEscape(policy)})
	switch {
	case noPolicy(err):
		return unavailablePolicy(policy, "create it with: vault policy write "+policy+" FILE")
	case err != nil:
		return vaultError(fmt.Sprintf("read Vault policy %q", policy), err, vaultRemedy)
	}
	return checkName(policy, answer.Data.Name)
}

// Redeem unwraps the grant's handle. An answer that is lost loses the token: the next
// Redeem has ErrUsed. The end of ctx does not cut the answer off.
func (b *VaultBackend) Redeem(ctx context.Context, g Grant) (Token, error) {
	op := fmt.Sprintf("unwrap the Vault token of task %s", g.Request.Task.ARN)
	if !time.Now().Before(g.Expires) {
		expired := refused(op, ErrExpired, "")
		return Token{}, errors.Join(expired, b.Revoke(ctx, g.Accessor))
	}
	if err := ctx.Err(); err != nil {
		return Token{}, err
	}
	ctx = context.WithoutCancel(ctx)
	answer, err := b.Client.do(ctx, vaultCall{method: http.MethodPost, path: "sys/wrapping/unwrap", token: g.Handle})
	switch {
	case usedHandle(err):
		return Token{}, refused(op, fmt.Errorf("%w: %w", ErrUsed, err), "")
	case err != nil: // unwrapping needs no privilege: nothing else refuses a handle that is good
		return Token{}, notYet(op, err)
	case answer.Auth == nil || answer.Auth.ClientToken.Empty():
		return Token{}, refused(op, errNoAuth, "")
	}
	auth := answer.Auth
	if !auth.Orphan {
		child := refused(op, errors.New("the token would end with the broker's"),
			"vault write auth/token/roles/"+cmp.Or(b.Role, VaultRole)+" orphan=true")
		return Token{}, errors.Join(child, b.Revoke(ctx, auth.Accessor))
	}
	// Vault unwraps a token even if it was revoked in the meantime.
	if _, err := b.Client.LookupSelf(ctx, auth.ClientToken); errors.Is(err, ErrPrivilege) {
		return Token{}, refused(op, ErrUsed, "")
	}
	life := seconds(auth.LeaseDuration)
	token := Token{Secret: auth.ClientToken, Accessor: auth.Accessor, Policies: auth.Policies,
		Expires: time.Now().Add(life)}
	if auth.Renewable { // unless the token role forbids it
		token.Period = life
	}
	return token, nil
}

// Revoke revokes the token of an accessor. Vault has no error for one that it does not know, but
// a warning.
func (b *VaultBackend) Revoke(ctx context.Context, accessor string) error {
	_, err := b.byAccessor(ctx, "revoke-accessor", accessor)
	if err == nil || unknownAccessor(err) {
		return nil
	}
	return notRevoked(vaultError(fmt.Sprintf("revoke the Vault token with accessor %s", accessor), err, vaultRemedy))
}

// Expiry reads the token of an accessor.
func (b *VaultBackend) Expiry(ctx context.Context, accessor string) (time.Time, bool, error) {
	answer, err := b.byAccessor(ctx, "lookup-accessor", accessor)
	switch {
	case unknownAccessor(err):
		return time.Time{}, false, nil
	case err != nil:
		return time.Time{}, false, vaultError(fmt.Sprintf("look up the Vault token with accessor %s", accessor), err,
			vaultRemedy)
	}
	return time.Now().Add(seconds(answer.Data.TTL)), true, nil
}

func (b *VaultBackend) byAccessor(ctx context.Context, operation, accessor string) (*vaultAnswer, error) {
	body := map[string]string{"accessor": accessor}
	return b.do(ctx, vaultCall{method: http.MethodPost, path: "auth/token/" + operation, body: body})
}

// do sends a request with the broker's token.
func (b *VaultBackend) do(ctx context.Context, r vaultCall) (*vaultAnswer, error) {
	token, err := b.Token()
	if err != nil {
		return nil, err
	}
	r.token = token
	return b.Client.do(ctx, r)
}

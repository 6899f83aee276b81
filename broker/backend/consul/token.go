package consul

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/secret"
)

// tokenOf is the Token of one of Consul.
func tokenOf(name string, t *api.ACLToken) backend.Token {
	token := backend.Token{Secret: secret.New(t.SecretID), Accessor: t.AccessorID, Backend: name}
	for _, p := range t.Policies {
		token.Policies = append(token.Policies, p.Name)
	}
	if t.ExpirationTime != nil {
		token.Expires = *t.ExpirationTime
	}
	return token
}

// read returns the token of an accessor without its secret. The read is consistent, since
// a server that is starting does not know the tokens of its log yet.
func read(ctx context.Context, c *api.Client, name, accessor, remedy string) (backend.Token, bool, error) {
	t, _, err := c.ACL().TokenRead(accessor, (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx))
	switch {
	case consulutil.Status(err) == http.StatusNotFound:
		return backend.Token{}, false, nil
	case err != nil:
		return backend.Token{}, false, failed(fmt.Sprintf("read the token with accessor %s", accessor), err, remedy)
	}
	return withoutSecret(tokenOf(name, t))
}

// withoutSecret is the result of a Lookup. Consul removes an expired token some time
// after it has expired.
func withoutSecret(t backend.Token) (backend.Token, bool, error) {
	if !t.Expires.IsZero() && !time.Now().Before(t.Expires) {
		return backend.Token{}, false, nil
	}
	t.Secret = secret.Value{}
	return t, true, nil
}

// remove deletes the token of an accessor.
func remove(ctx context.Context, c *api.Client, accessor, remedy string) error {
	_, err := c.ACL().TokenDelete(accessor, (&api.WriteOptions{}).WithContext(ctx))
	if err == nil || consulutil.Status(err) == http.StatusNotFound {
		return nil
	}
	return failed(fmt.Sprintf("delete the token with accessor %s", accessor), err, remedy)
}

// failed is the error of a request to Consul; forbidden is the remedy if it was denied.
func failed(op string, err error, forbidden string) error {
	e := &backend.Error{Op: op, Err: err, Class: consulutil.Classify(err)}
	if consulutil.Status(err) == http.StatusForbidden {
		e.Err, e.Remedy = fmt.Errorf("%w: %w", backend.ErrPrivilege, err), forbidden
	}
	return e
}

// refused is an error that waiting does not change.
func refused(op string, err error, remedy string) error {
	return &backend.Error{Op: op, Err: err, Remedy: remedy, Class: retry.Permanent}
}

// redeem takes a grant, and gives it back if create fails for a reason that may pass.
// The end of ctx does not cut create off, only the client's timeout does: an answer that
// is not read would leave a token without an owner.
func (p *grants) redeem(ctx context.Context, g backend.Grant, create func(context.Context) (backend.Token, error)) (backend.Token, error) {
	if err := p.take(g); err != nil {
		return backend.Token{}, refused(fmt.Sprintf("redeem the grant of task %s", g.Request.Task.ARN), err, "")
	}
	err := ctx.Err()
	if err == nil {
		var token backend.Token
		if token, err = create(context.WithoutCancel(ctx)); err == nil {
			return token, nil
		}
	}
	if backend.Classify(err).Retryable() {
		p.put(g)
	}
	return backend.Token{}, err
}

package consul

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
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
	slices.Sort(token.Policies)
	if t.ExpirationTime != nil {
		token.Expires = *t.ExpirationTime
	}
	return token
}

// newToken is the Token of one that was requested at start. Its end is by the clock of this
// process, which may differ from the servers'.
func newToken(name string, t *api.ACLToken, start time.Time) backend.Token {
	token := tokenOf(name, t)
	if t.ExpirationTime != nil && !t.CreateTime.IsZero() {
		token.Expires = start.Add(t.ExpirationTime.Sub(t.CreateTime))
	}
	return token
}

// read returns the token of an accessor without its secret. The read is consistent, since
// a server that is starting does not know the tokens of its log yet.
func read(ctx context.Context, c *api.Client, name, accessor, remedy string) (backend.Token, bool, error) {
	t, _, err := c.ACL().TokenRead(accessor, (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx))
	switch {
	case noToken(err):
		return backend.Token{}, false, nil
	case err != nil:
		return backend.Token{}, false, failed(fmt.Sprintf("read the token with accessor %s", accessor), err, remedy)
	}
	return withoutSecret(tokenOf(name, t))
}

// noToken reports whether Consul has no token of an accessor, 1.20 with status 403. The
// answer is "ACL not found" alone if it does not know the token of the request.
func noToken(err error) bool {
	return consulutil.Status(err) == http.StatusNotFound || strings.Contains(consulutil.Reason(err), "token does not exist")
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
	if consulutil.Status(err) == http.StatusNotFound {
		// Consul gives the same answer if it does not know the token of the request.
		_, found, err := read(ctx, c, "", accessor, remedy)
		if found {
			err = failed(fmt.Sprintf("delete the token with accessor %s", accessor), errNotDeleted, "")
		}
		return err
	}
	if err == nil {
		return nil
	}
	return failed(fmt.Sprintf("delete the token with accessor %s", accessor), err, remedy)
}

var errNotDeleted = errors.New("the answer was that the token does not exist, but Consul has it")

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

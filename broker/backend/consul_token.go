package backend

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/secret"
)

// tokenOf is the Token of one of Consul.
func tokenOf(name string, t *api.ACLToken) Token {
	token := Token{Secret: secret.New(t.SecretID), Accessor: t.AccessorID, Backend: name}
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
func newToken(name string, t *api.ACLToken, start time.Time) Token {
	token := tokenOf(name, t)
	if t.ExpirationTime != nil && !t.CreateTime.IsZero() {
		token.Expires = start.Add(t.ExpirationTime.Sub(t.CreateTime))
	}
	return token
}

// readToken returns the token of an accessor without its secret. The read is consistent, since
// a server that is starting does not know the tokens of its log yet.
func readToken(ctx context.Context, c *api.Client, name, accessor, remedy string) (Token, bool, error) {
	t, _, err := c.ACL().TokenRead(accessor, (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx))
	switch {
	case noToken(err):
		return Token{}, false, nil
	case err != nil:
		return Token{}, false, consulError(fmt.Sprintf("read the token with accessor %s", accessor), err, remedy)
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
func withoutSecret(t Token) (Token, bool, error) {
	if !t.Expires.IsZero() && !time.Now().Before(t.Expires) {
		return Token{}, false, nil
	}
	t.Secret = secret.Value{}
	return t, true, nil
}

// deleteToken deletes the token of an accessor.
func deleteToken(ctx context.Context, c *api.Client, accessor, remedy string) error {
	_, err := c.ACL().TokenDelete(accessor, (&api.WriteOptions{}).WithContext(ctx))
	if consulutil.Status(err) == http.StatusNotFound {
		// Consul gives the same answer if it does not know the token of the request.
		_, found, err := readToken(ctx, c, "", accessor, remedy)
		if found {
			err = consulError(fmt.Sprintf("delete the token with accessor %s", accessor), errNotDeleted, "")
		}
		return err
	}
	if err == nil {
		return nil
	}
	return consulError(fmt.Sprintf("delete the token with accessor %s", accessor), err, remedy)
}

var errNotDeleted = errors.New("the answer was that the token does not exist, but Consul has it")

// consulError is the error of a request to Consul; forbidden is the remedy if it was denied.
func consulError(op string, err error, forbidden string) error {
	e := &Error{Op: op, Err: err}
	if consulutil.Status(err) == http.StatusForbidden {
		e.Err, e.Remedy = fmt.Errorf("%w: %w", ErrPrivilege, err), forbidden
	}
	return e
}

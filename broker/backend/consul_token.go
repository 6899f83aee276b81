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

// newToken is the Token of one that was requested at start. Its end is by the clock of this
// process, which may differ from the servers'.
func newToken(t *api.ACLToken, start time.Time) Token {
	token := Token{Secret: secret.New(t.SecretID), Accessor: t.AccessorID}
	for _, p := range t.Policies {
		token.Policies = append(token.Policies, p.Name)
	}
	slices.Sort(token.Policies)
	if t.ExpirationTime != nil {
		token.Expires = start.Add(t.ExpirationTime.Sub(t.CreateTime))
	}
	return token
}

// deleteToken deletes the token of an accessor.
func deleteToken(ctx context.Context, c *api.Client, accessor, remedy string) error {
	op := fmt.Sprintf("delete the token with accessor %s", accessor)
	_, err := c.ACL().TokenDelete(accessor, (&api.WriteOptions{}).WithContext(ctx))
	switch {
	case err == nil:
		return nil
	case consulutil.Status(err) != http.StatusNotFound:
		return consulError(op, err, remedy)
	}
	// Consul gives the same answer if it does not know the token of the request. The read is
	// consistent, since a server that is starting does not know the tokens of its log yet.
	_, _, err = c.ACL().TokenRead(accessor, (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx))
	switch {
	case noToken(err):
		return nil
	case err != nil:
		return consulError(fmt.Sprintf("read the token with accessor %s", accessor), err, remedy)
	}
	return consulError(op, errors.New("the answer was that the token does not exist, but Consul has it"), "")
}

// noToken reports whether Consul has no token of an accessor, 1.20 with status 403. The
// answer is "ACL not found" alone if it does not know the token of the request.
func noToken(err error) bool {
	return consulutil.Status(err) == http.StatusNotFound || strings.Contains(consulutil.Reason(err), "token does not exist")
}

// consulError is the error of a request to Consul; forbidden is the remedy if it was denied.
func consulError(op string, err error, forbidden string) error {
	e := &Error{Op: op, Err: err}
	if consulutil.Status(err) == http.StatusForbidden {
		e.Err, e.Remedy = fmt.Errorf("%w: %w", ErrPrivilege, err), forbidden
	}
	return e
}

package backend

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/secret"
)

// newToken returns the Token of one that was requested at start. Its end is by the clock of this
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
	if err := consulutil.DeleteToken(ctx, c, accessor, &api.WriteOptions{}); err != nil {
		return notRevoked(consulError(op, err, remedy))
	}
	return nil
}

// consulError returns the error of a request to Consul; forbidden is the remedy if it was denied.
func consulError(op string, err error, forbidden string) error {
	e := &Error{Op: op, Err: err}
	if consulutil.Status(err) == http.StatusForbidden {
		e.Err, e.Remedy = fmt.Errorf("%w: %w", ErrPrivilege, err), forbidden
	}
	return e
}

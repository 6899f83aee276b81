package backend

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// vaultStatusError is an answer of Vault that is not a success.
type vaultStatusError struct {
	status int
	text   string
}

func (e *vaultStatusError) Error() string {
	return fmt.Sprintf("Vault answered %d: %s", e.status, e.text)
}

func vaultStatus(err error) int {
	var refused *vaultStatusError
	if errors.As(err, &refused) {
		return refused.status
	}
	return 0
}

// classifyVault distinguishes a refusal from a server that is sealed, in standby, overloaded or
// unreachable.
func classifyVault(err error) retry.Class {
	switch code := vaultStatus(err); {
	case code == 0:
		return consulutil.Classify(err)
	case code >= 500, code == http.StatusTooManyRequests, code == http.StatusPreconditionFailed:
		return retry.NotYet
	default:
		return retry.Permanent
	}
}

// vaultError is the error of an operation; forbidden is the remedy if Vault denied it.
func vaultError(op string, err error, forbidden string) error {
	e := &Error{Op: op, Err: consulutil.WithClass(err, classifyVault(err))}
	if vaultStatus(err) == http.StatusForbidden {
		e.Err, e.Remedy = fmt.Errorf("%w: %w", ErrPrivilege, e.Err), forbidden
	}
	return e
}

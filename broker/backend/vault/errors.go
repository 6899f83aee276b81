package vault

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// statusError is an answer of Vault that is not a success.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return fmt.Sprintf("Vault answered %d: %s", e.status, e.text) }

func status(err error) int {
	var refused *statusError
	if errors.As(err, &refused) {
		return refused.status
	}
	return 0
}

// classify distinguishes a refusal from a server that is sealed, in standby, overloaded or
// unreachable.
func classify(err error) retry.Class {
	switch code := status(err); {
	case code == 0:
		return consulutil.Classify(err)
	case code >= 500, code == http.StatusTooManyRequests, code == http.StatusPreconditionFailed:
		return retry.Retry
	default:
		return retry.Permanent
	}
}

// failed is the error of an operation; forbidden is the remedy if Vault denied it.
func failed(op string, err error, forbidden string) error {
	e := &backend.Error{Op: op, Err: err, Class: classify(err)}
	if status(err) == http.StatusForbidden {
		e.Err, e.Remedy = fmt.Errorf("%w: %w", backend.ErrPrivilege, err), forbidden
	}
	return e
}

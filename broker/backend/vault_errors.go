package backend

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// vaultStatusError is an answer of Vault that is not a success, or a redirect.
type vaultStatusError struct {
	status int
	text   string // its errors, or empty
}

func (e *vaultStatusError) Error() string {
	return fmt.Sprintf("Vault answered %d: %s", e.status, cmp.Or(e.text, http.StatusText(e.status)))
}

// foreignAnswerError is an answer that Vault did not write, such as that of a load balancer in front
// of it. Its status states nothing about Vault.
type foreignAnswerError struct{ status int }

func (e *foreignAnswerError) Error() string {
	return fmt.Sprintf("the answer, with status %d, is not Vault's; check the address", e.status)
}

// vaultStatus returns the status of Vault's own answer inside err, or 0 when there was none.
func vaultStatus(err error) int {
	var refused *vaultStatusError
	if errors.As(err, &refused) {
		return refused.status
	}
	return 0
}

// unknownAccessor reports whether Vault has no token of the accessor. The status differs between
// versions. When the index of accessors outlives the token, as after a revocation by its
// holder, revoke-accessor has another text.
func unknownAccessor(err error) bool {
	refused, ok := errors.AsType[*vaultStatusError](err)
	return ok && (strings.Contains(refused.text, "invalid accessor") ||
		refused.status == http.StatusBadRequest && strings.Contains(refused.text, "token not found"))
}

// noPolicy reports whether Vault has no policy of the name: it answers 404 without an error. With one
// the path is wrong.
func noPolicy(err error) bool {
	refused, ok := errors.AsType[*vaultStatusError](err)
	return ok && refused.status == http.StatusNotFound && refused.text == ""
}

// refusesCreation reports whether Vault refuses to create the token. Not every 400 is a refusal: when
// leadership or the storage is lost meanwhile, the answer has that status, too.
func refusesCreation(err error) bool {
	refused, ok := errors.AsType[*vaultStatusError](err)
	return ok && refused.status == http.StatusBadRequest && slices.ContainsFunc([]string{
		"privileges required", "must be subset of", "disallowed by this role", "unknown role", "may not be created",
		"batch tokens cannot", "restricted use token cannot",
	}, func(text string) bool { return strings.Contains(refused.text, text) })
}

// usedHandle reports whether Vault knows no such wrapping token. It has other texts, of statuses 400 and 403,
// for one that it cannot read.
func usedHandle(err error) bool {
	refused, ok := errors.AsType[*vaultStatusError](err)
	return ok && strings.Contains(refused.text, "wrapping token is not valid or does not exist")
}

// vaultDRSecondary and vaultPerfStandby are statuses of a node that is not active.
const vaultDRSecondary, vaultPerfStandby = 472, 473

// classifyVault distinguishes a refusal from a server that is sealed, in standby, overloaded or
// unreachable.
func classifyVault(err error) retry.Class {
	switch code := vaultStatus(err); {
	case code == 0:
		return consulutil.Classify(err)
	case code < 400, code >= 500, code == http.StatusTooManyRequests, code == http.StatusPreconditionFailed,
		code == vaultDRSecondary, code == vaultPerfStandby:
		return retry.NotYet
	default:
		return retry.Permanent
	}
}

// vaultError returns the error of an operation; forbidden is the remedy if Vault denied it.
func vaultError(op string, err error, forbidden string) error {
	e := &Error{Op: op, Err: consulutil.WithClass(err, classifyVault(err))}
	if vaultStatus(err) == http.StatusForbidden {
		e.Err, e.Remedy = fmt.Errorf("%w: %w", ErrPrivilege, e.Err), forbidden
	}
	return e
}

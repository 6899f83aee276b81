package backend

import (
	"errors"
	"fmt"
	"strings"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// What the broker distinguishes. An error wraps one of them, or none.
var (
	// ErrUsed means that the grant is not redeemable any more: it was redeemed or
	// revoked, or another process issued it.
	ErrUsed = errors.New("the grant was used or revoked")
	// ErrExpired means that the grant was not redeemed in time.
	ErrExpired = errors.New("the grant has expired")
	// ErrPolicy means that a requested policy does not exist or is not permitted.
	ErrPolicy = errors.New("the policy is not available")
	// ErrTTL means that no token has a life that the request permits.
	ErrTTL = errors.New("the ttl is not available")
	// ErrPrivilege means that the broker lacks a privilege.
	ErrPrivilege = errors.New("the broker lacks a privilege")
)

// Error is a failed request to a backend. Its class is that of consulutil.Classify.
type Error struct {
	// Op is the request with its object, such as `create the token of task "..."`.
	Op  string
	Err error
	// Remedy is what the operator can do, or empty.
	Remedy string
}

func (e *Error) Error() string {
	if e.Remedy == "" {
		return e.Op + ": " + e.Err.Error()
	}
	return fmt.Sprintf("%s: %v: %s", e.Op, e.Err, e.Remedy)
}

func (e *Error) Unwrap() error { return e.Err }

// refused returns an error that waiting does not change.
func refused(op string, err error, remedy string) error {
	return &Error{Op: op, Err: consulutil.WithClass(err, retry.Permanent), Remedy: remedy}
}

// notYet returns an error that waiting may change, whatever its own class.
func notYet(op string, err error) error {
	return &Error{Op: op, Err: consulutil.WithClass(err, retry.NotYet)}
}

// notRevoked returns the error of a revocation, which every answer but success leaves to be repeated: the
// token may be alive, and what refuses now may accept later.
func notRevoked(err error) error { return consulutil.WithClass(err, retry.NotYet) }

// FoldName returns a name in the form in which Consul and Vault compare names of policies.
func FoldName(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// checkName returns an error unless the server has a policy by exactly the name that was
// requested, which the broker has compared with its patterns: servers fold names.
func checkName(requested, actual string) error {
	if requested == actual {
		return nil
	}
	return unavailablePolicy(requested, fmt.Sprintf("the server's name of the policy is %q: write that", actual))
}

// unavailablePolicy returns the error of a policy that a request names and that the
// backend does not give.
func unavailablePolicy(policy, remedy string) error {
	return refused(fmt.Sprintf("policy %q", policy), ErrPolicy, remedy)
}

package consulutil

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// Status returns the HTTP status of a Consul answer inside err, or 0 when there was
// no answer.
func Status(err error) int {
	status, _ := errors.AsType[api.StatusError](err)
	return status.Code
}

// Reason returns the text of a Consul answer inside err, or empty when there was no
// answer.
func Reason(err error) string {
	status, _ := errors.AsType[api.StatusError](err)
	return status.Body
}

// answered reports whether err is a Consul answer of that status whose text has one of these.
func answered(err error, status int, texts ...string) bool {
	return Status(err) == status && containsAny(Reason(err), texts)
}

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// Anonymous reports whether a refusal is of a request without a token, in the words
// of Consul 1.20 or of older servers.
func Anonymous(err error) bool {
	return containsAny(Reason(err), []string{"anonymous token", aclrules.Anonymous})
}

// UnknownToken reports whether Consul refused a request because it does not know
// the token: not yet, right after a login, or no longer.
func UnknownToken(err error) bool {
	// The suffix, because a missing auth method is "ACL not found: auth method
	// ..." and a client agent puts the failing call in front.
	return Status(err) == http.StatusForbidden && strings.HasSuffix(Reason(err), "ACL not found") &&
		!notBootstrapped(err)
}

// NoToken reports whether Consul has no token of the accessor that a request names. The answer is
// another one if it does not know the token of the request.
func NoToken(err error) bool { return strings.Contains(Reason(err), "token does not exist") }

// ACLsDisabled reports whether Consul refused a request because it has no ACLs.
func ACLsDisabled(err error) bool {
	return answered(err, http.StatusUnauthorized, "ACL support disabled")
}

// NotJoined is the remedy of an agent without servers.
const NotJoined = "the agent of this task has not joined the Consul servers: see the log of consul-client, and check " +
	"-retry-join and ports 8300 and 8301 between the task and the servers"

// WithoutServers reports whether the answer is that of a client agent that has
// not joined yet. One that cannot ask a server about a token resolves it to the
// accessor primary-dc-down, which has no permission.
func WithoutServers(err error) bool {
	return answered(err, http.StatusForbidden, "'primary-dc-down'") ||
		answered(err, http.StatusInternalServerError, "No known Consul servers")
}

// notBootstrapped reports whether Consul refused a request because its ACL
// system has no token yet.
func notBootstrapped(err error) bool {
	return answered(err, http.StatusForbidden, "ACL system must be bootstrapped")
}

// unknownService reports whether a catalog request names a service, or a check of one,
// that the node does not have. Its status is that of a server's fault.
func unknownService(err error) bool {
	return answered(err, http.StatusInternalServerError, "Unknown service ID",
		"Unknown check ID", "Missing service registration")
}

// WithClass returns an error that Classify gives that class: one that does
// not follow from its text, because it depends on the object.
func WithClass(err error, class retry.Class) error { return &classed{err, class} }

// classed is an error whose class depends on what it is about.
type classed struct {
	error
	class retry.Class
}

func (c *classed) Unwrap() error { return c.error }

// Classify returns the class of an error of this package or of a client it
// made; the tables are in errors_test.go. 404, which is Consul's own with such a client, is
// Gone; other refusals are Permanent; everything else is NotYet: every retry has an end.
func Classify(err error) retry.Class {
	if _, permanent := errors.AsType[*retry.PermanentError](err); permanent {
		return retry.Permanent
	}
	if known, ok := errors.AsType[*classed](err); ok {
		return known.class
	}
	switch code := Status(err); {
	case code == 0:
		return classifyTransport(err)
	case code == http.StatusNotFound, unknownService(err):
		return retry.Gone
	case code == http.StatusTooManyRequests, WithoutServers(err), notBootstrapped(err):
		return retry.NotYet
	case refusedWith500(err):
		return retry.Permanent
	case code >= 500:
		return retry.NotYet
	default:
		return retry.Permanent
	}
}

// ClassifyNewToken classifies as Classify does, for requests that carry a token that was made a
// moment ago: a server or agent that does not know it yet may know it soon.
func ClassifyNewToken(err error) retry.Class {
	if UnknownToken(err) {
		return retry.NotYet
	}
	return Classify(err)
}

// classifyTransport returns the class of an error without an answer. Waiting changes
// neither a certificate that does not verify nor a server's protocol.
func classifyTransport(err error) retry.Class {
	_, cert := errors.AsType[*tls.CertificateVerificationError](err)
	if cert || errors.Is(err, http.ErrSchemeMismatch) || errors.Is(err, errNeedsHTTPS) {
		return retry.Permanent
	}
	return retry.NotYet
}

// Unreachable reports whether no connection was made, so that no server has got the request.
func Unreachable(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// Remedy adds what was done and what to check to an error that lasted until the
// limit. Every other error is returned unchanged: a signal, a refusal, nil.
func Remedy(err error, what, remedy string) error {
	_, gaveUp := errors.AsType[*retry.GaveUpError](err)
	_, signal := errors.AsType[*exit.SignalError](err)
	if remedy == "" || !gaveUp || signal {
		return err
	}
	return fmt.Errorf("%s: %w (%s)", what, err, remedy)
}

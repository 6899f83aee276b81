package consulutil

import (
	"crypto/tls"
	"errors"
	"net/http"
	"strings"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// Status is the HTTP status of a Consul answer inside err, or 0 when there was
// no answer.
func Status(err error) int {
	var status api.StatusError
	if errors.As(err, &status) {
		return status.Code
	}
	return 0
}

// Reason is the text of a Consul answer inside err, or empty when there was no
// answer.
func Reason(err error) string {
	var status api.StatusError
	if errors.As(err, &status) {
		return status.Body
	}
	return ""
}

// UnknownToken says whether Consul refused a request because it does not know
// the token: not yet, right after a login, or no longer.
func UnknownToken(err error) bool {
	// The suffix, because a missing auth method is "ACL not found: auth method
	// ..." and a client agent puts the failing call in front.
	return Status(err) == http.StatusForbidden && strings.HasSuffix(Reason(err), "ACL not found")
}

// ACLsDisabled says whether Consul refused a request because it has no ACLs.
func ACLsDisabled(err error) bool {
	return Status(err) == http.StatusUnauthorized && strings.Contains(Reason(err), "ACL support disabled")
}

// withoutServers says whether a client agent refused a token because it has not
// reached a server yet that could tell what the token may do: it judges by this
// accessor then, which belongs to nobody.
func withoutServers(err error) bool {
	return Status(err) == http.StatusForbidden && strings.Contains(Reason(err), "'primary-dc-down'")
}

// Classify says what to do about an error of this package or of a client it
// made (design decision 5, tables in errors_test.go). 404 is Gone; other
// refusals are Permanent; no answer, 429 and 5xx are Retry. An unknown kind of
// error is Retry: every retry has an end.
func Classify(err error) retry.Class {
	var permanent *retry.PermanentError
	if errors.As(err, &permanent) {
		return retry.Permanent
	}
	switch code := Status(err); {
	case code == 0:
		return classifyTransport(err)
	case code == http.StatusNotFound:
		return retry.Gone
	case code == http.StatusTooManyRequests:
		return retry.Retry
	case withoutServers(err):
		return retry.Retry
	case refusedWith500(err):
		return retry.Permanent
	case code >= 500:
		return retry.Retry
	default:
		return retry.Permanent
	}
}

// ClassifyNewToken is Classify for requests that carry a token that was made a
// moment ago: a server or agent that does not know it yet may know it soon.
func ClassifyNewToken(err error) retry.Class {
	if UnknownToken(err) {
		return retry.Retry
	}
	return Classify(err)
}

// classifyTransport judges an error without an answer. A certificate that does
// not verify and a server that speaks another protocol stay that way.
func classifyTransport(err error) retry.Class {
	var cert *tls.CertificateVerificationError
	if errors.As(err, &cert) || errors.Is(err, http.ErrSchemeMismatch) {
		return retry.Permanent
	}
	return retry.Retry
}

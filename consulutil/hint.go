package consulutil

import (
	"crypto/tls"
	"errors"
	"net/http"
	"strings"
)

// refusals are what Consul 1.20 answers to a login that it refuses, and what
// the user can do about each; the first whose text occurs counts. Consul
// answers most of them with status 500, which otherwise means "try again".
func refusals() []struct {
	text, remedy string
	permanent    bool
} {
	return []struct {
		text, remedy string
		permanent    bool
	}{
		{"ACL not found: auth method", "create the auth method (consul-ecs acl-controller does) or correct its name: consulLogin.method, for client-entrypoint -auth-method", true},
		{"is not trusted", "add the role's ARN to BoundIAMPrincipalARNs of the auth method, or give the task a role below the path that the method trusts", true},
		{`missing header "X-Consul-IAM-ServerID"`, "set consulLogin.serverIdHeaderValue to the auth method's ServerIDHeaderValue", true},
		{`" but got "`, "set consulLogin.serverIdHeaderValue to the auth method's ServerIDHeaderValue", true},
		{`missing header "X-Consul-IAM-GetEntity`, "set consulLogin.includeEntity to true, the auth method asks for entity details", true},
		{"invalid token: ", "this version and the Consul servers disagree about the login's format", true},
		{"response body is invalid", "AWS refused the signed request: let the task role call iam:GetRole on itself and check consulLogin.region", false},
		{"ACL support disabled", "set consulLogin.enabled to false or enable ACLs in Consul", true},
		{"HTTP request to an HTTPS server", "begin consulHTTPAddr with https://", true},
		{"Permission denied", "no binding rule of the auth method fits: for a service tag the task role with consul.hashicorp.com.service-name, for a client bind the clients' role", true},
	}
}

// loginRemedy is the advice for a refused login, or empty.
func loginRemedy(err error) string {
	var cert *tls.CertificateVerificationError
	if errors.As(err, &cert) {
		return "correct consulCACertFile (or CONSUL_CACERT, for client-entrypoint CONSUL_HTTPS_CACERT_PEM), or the host name in consulHTTPAddr"
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return "begin consulHTTPAddr with http://"
	}
	reason := Reason(err)
	if reason == "" {
		return ""
	}
	for _, r := range refusals() {
		if strings.Contains(reason, r.text) {
			return r.remedy
		}
	}
	return ""
}

// shortSession is in the refusal of a session that is shorter than the servers allow.
const shortSession = "Invalid Session TTL"

// refusedWith500 knows the refusals that look like faults of the server.
func refusedWith500(err error) bool {
	if Status(err) != http.StatusInternalServerError {
		return false
	}
	reason := Reason(err)
	if strings.Contains(reason, "Scripts are disabled on this agent") || strings.Contains(reason, shortSession) {
		return true
	}
	for _, r := range refusals() {
		if r.permanent && strings.Contains(reason, r.text) {
			return true
		}
	}
	return false
}

package consulutil

import (
	"fmt"
	"net/http"
	"strings"
)

// defaultPolicyHeader is in each answer of an API endpoint of Consul since 1.9.
const defaultPolicyHeader = "X-Consul-Default-Acl-Policy"

// genuine returns an error in place of an answer that Consul did not write and that would be taken for a
// fact: that an object does not exist, that a token is destroyed, or that keys are written. A load balancer in front of
// the servers gives such answers while it has no server. It follows no redirect: Consul's API
// has none, and one to another host would take the token there.
type genuine struct{ next http.RoundTripper }

// foreignAnswerError is an answer that is not Consul's. It is retried.
type foreignAnswerError struct{ status int }

func (e *foreignAnswerError) Error() string {
	return fmt.Sprintf("the answer, with status %d, is not Consul's; check the address", e.status)
}

// RoundTrip implements http.RoundTripper.
func (g genuine) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := g.next.RoundTrip(r)
	if err == nil && foreign(r, resp) {
		resp.Body.Close()
		return nil, &foreignAnswerError{resp.StatusCode}
	}
	return resp, err
}

// CloseIdleConnections closes those of the next transport, for http.Client.
func (g genuine) CloseIdleConnections() { (&http.Client{Transport: g.next}).CloseIdleConnections() }

// foreign reports whether an answer states a fact and is not Consul's.
func foreign(r *http.Request, resp *http.Response) bool {
	switch status := resp.StatusCode; {
	case status >= 300 && status < 400:
		return true
	case resp.Header.Get(defaultPolicyHeader) != "":
		return false
	case status == http.StatusNotFound:
		return !strings.HasPrefix(peek(resp), noEndpoint)
	case status < 300:
		path := r.URL.Path // behind the path of the address, if it has one
		return r.Method == http.MethodDelete && strings.Contains(path, "/v1/acl/token/") ||
			strings.HasSuffix(path, "/v1/acl/logout") ||
			strings.HasSuffix(path, "/v1/txn")
	}
	return false
}

// noEndpoint is Consul's text about a path that it does not have.
const noEndpoint = "Invalid URL path"

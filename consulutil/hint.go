package consulutil

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// refusal is an answer of Consul 1.20 to a login, by its text.
type refusal struct {
	text   string
	class  retry.Class
	remedy string
}

const differentClocks = "the clocks of this host and AWS differ by more than five minutes: synchronize this host's"

// refusals returns the refusals in the order in which they are looked for. Consul answers most of
// them with status 500, which otherwise is worth another attempt. NotYet are those
// of a cluster whose ACL objects are still being created: no matching binding rule
// and a binding rule whose role or policy is missing have the same answer.
func refusals() []refusal {
	const serverID = "set consulLogin.serverIdHeaderValue to the auth method's ServerIDHeaderValue"
	return []refusal{
		{"ACL not found: auth method", retry.NotYet,
			"the auth method is created by the controller (consul-ecs controller, with agents acl-controller), which " +
				"may not have done so yet; if it has, correct the name: consulLogin.method, for client-entrypoint " +
				"-auth-method"},
		{"is not trusted", retry.Permanent,
			"add the role's ARN to BoundIAMPrincipalARNs of the auth method, or give the task a role below the path " +
				"that the method trusts"},
		{`missing header "X-Consul-IAM-ServerID"`, retry.Permanent, serverID},
		{`" but got "`, retry.Permanent, serverID},
		{`missing header "X-Consul-IAM-GetEntity`, retry.Permanent,
			"set consulLogin.includeEntity to true, the auth method requires entity details"},
		{"invalid token: ", retry.Permanent, "this version and the Consul servers disagree about the login's format"},
		{"invalid bind name: ", retry.Permanent,
			"the binding rule yields no valid name for this principal: tag the task role with " +
				config.TagServiceName},
		{"not authorized to perform: iam:Get", retry.NotYet,
			"allow iam:GetRole on the task role itself in one of its policies"},
		{"Signature expired", retry.NotYet, differentClocks},
		{"Signature not yet current", retry.NotYet, differentClocks},
		{"security token included in the request is expired", retry.NotYet,
			"the task's credentials have expired: ECS renews them, and the clock of this host must be right"},
		{"security token included in the request is invalid", retry.NotYet,
			"AWS does not know the task's credentials: consulLogin.region must be in the partition of the task role, " +
				"which must not have been deleted"},
		{"Rate exceeded", retry.NotYet, "AWS throttles the Consul servers' requests: start fewer tasks at a time"},
		{"error making request: POST", retry.NotYet,
			"the Consul servers do not reach AWS: give their network a way to STS and IAM"},
		{"received error code 5", retry.NotYet, "AWS fails at the moment, there is nothing to correct"},
		{"received error code ", retry.NotYet,
			"AWS refused the request that this task has signed: check the task role and consulLogin.region"},
		{"response body is invalid", retry.NotYet,
			"AWS refused the signed request: let the task role call iam:GetRole on itself " +
				"and check consulLogin.region"},
		{"No path to datacenter", retry.NotYet,
			"correct consulLogin.datacenter, or federate that datacenter with the servers' own"},
		{"ACL support disabled", retry.Permanent, "set consulLogin.enabled to false or enable ACLs in Consul"},
		{"HTTP request to an HTTPS server", retry.Permanent, "use a consulHTTPAddr that starts with https://"},
		{"Permission denied", retry.NotYet,
			"no binding rule of the auth method matches, or its role or policy is missing; the controller " +
				"(consul-ecs controller, with agents acl-controller) creates them and may not have done so yet; if " +
				"it has, tag the task role with " + config.TagServiceName +
				" for a service, or bind the clients' role for a client"},
	}
}

// explainLogin adds to the error of a login what the user can do about it, and
// the class of a refusal.
func explainLogin(method string, err error) error {
	err = fmt.Errorf("log in with auth method %q: %w", method, &readable{err})
	_, hasRemedy := errors.AsType[*serverError](err)
	certificate := certificateRemedy(err,
		"consulCACertFile (or CONSUL_CACERT, for client-entrypoint CONSUL_HTTPS_CACERT_PEM)",
		"the host name in consulHTTPAddr")
	switch {
	case hasRemedy:
		return err
	case certificate != "":
		return fmt.Errorf("%w: %s", err, certificate)
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("%w: use a consulHTTPAddr that starts with http://", err)
	}
	reason := Reason(err)
	for _, r := range refusals() {
		if reason != "" && strings.Contains(reason, r.text) {
			return &classed{fmt.Errorf("%w: %s", err, r.remedy), r.class}
		}
	}
	return err
}

// readable is an error whose text has the code and the message of AWS's error documents in place of their XML.
type readable struct{ err error }

var awsDocument = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)(?:<\?xml[^>]*>\s*)?<ErrorResponse.*?<Code>([^<]*)</Code>.*?` +
		`<Message>([^<]*)</Message>.*?</ErrorResponse>\s*`)
})

func (r *readable) Error() string { return awsDocument().ReplaceAllString(r.err.Error(), "$1: $2") }
func (r *readable) Unwrap() error { return r.err }

// shortSession is in the refusal of a session that is shorter than the servers allow.
const shortSession = "Invalid Session TTL"

// refusedWith500 reports whether a refusal has the status of a server's fault.
func refusedWith500(err error) bool {
	return answered(err, http.StatusInternalServerError, "Scripts are disabled on this agent", shortSession) ||
		InvalidRegistration(err)
}

// InvalidRegistration reports whether the servers refused a registration in the catalog
// because of its content, with the status of a server's fault. The list is that of what is
// wrong with a proxy.
func InvalidRegistration(err error) bool {
	return answered(err, http.StatusInternalServerError, "Invalid Service Meta",
		"Invalid service address", " occurred:\n\t* ")
}

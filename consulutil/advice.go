package consulutil

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// WithoutPartitions is the advice for a server that has no admin partitions.
const WithoutPartitions = "admin partitions need Consul Enterprise; leave out -partitions-enabled " +
	"(controller.partitionsEnabled), CONSUL_PARTITION and CONSUL_NAMESPACE"

// noToken is the advice for requests that had none: the policy that they need must not
// become the anonymous token's.
const noToken = "set CONSUL_HTTP_TOKEN or CONSUL_HTTP_TOKEN_FILE, the request had no token"

// needing is an error of a request that needs an ACL rule.
type needing struct {
	error
	rule string
}

func (n *needing) Unwrap() error { return n.error }

// Needs notes for Advise which ACL rule a request needs. It gives nil for nil.
func Needs(err error, rule string) error {
	if err == nil {
		return nil
	}
	return &needing{err, rule}
}

// Advise adds to an error what the user can do about the refusals in it that Needs
// has noted, also below errors.Join: each advice and each rule once. Its text is in a
// separate line below an error of several.
func Advise(err error) error {
	var advice, rules []string
	visit(err, func(n *needing) {
		switch text := n.advice(); {
		case text != "":
			advice = append(advice, text)
		case Status(n.error) == http.StatusForbidden:
			rules = append(rules, n.rule)
			if Anonymous(n.error) {
				advice = append(advice, noToken)
			}
		}
	})
	if len(rules) > 0 {
		advice = append(advice, Allow(unique(rules)...))
	}
	switch advice = unique(advice); {
	case len(advice) == 0:
		return err
	case !strings.Contains(err.Error(), "\n"):
		return fmt.Errorf("%w: %s", err, strings.Join(advice, "; "))
	}
	return fmt.Errorf("%w\n%s", err, strings.Join(advice, "\n"))
}

// Allow returns the advice to give the command's token what it lacks.
func Allow(rules ...string) string {
	return "give the token of CONSUL_HTTP_TOKEN a policy with: " + strings.Join(rules, " ")
}

// advice returns the remedy of a refusal that no ACL rule corrects, or empty.
func (n *needing) advice() string {
	switch {
	case UnknownToken(n.error):
		return "Consul does not know the token: correct CONSUL_HTTP_TOKEN or CONSUL_HTTP_TOKEN_FILE"
	case ACLsDisabled(n.error):
		return "enable ACLs in Consul; without them there is nothing to set up"
	case strings.Contains(Reason(n.error), shortSession):
		return "set session_ttl_min of the Consul servers to 10s, its default"
	case strings.Contains(Reason(n.error), "Consul Enterprise feature"):
		return WithoutPartitions
	}
	return ""
}

// visit finds what Needs has noted in an error.
func visit(err error, found func(*needing)) {
	if n, ok := err.(*needing); ok {
		found(n)
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			visit(err, found)
		}
		return
	}
	if below := errors.Unwrap(err); below != nil {
		visit(below, found)
	}
}

// unique leaves out what was there before.
func unique(texts []string) []string {
	var once []string
	for _, t := range texts {
		if !slices.Contains(once, t) {
			once = append(once, t)
		}
	}
	return once
}

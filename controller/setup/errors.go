package setup

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/controller/wanted"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// failures are objects that were not read or written, with the reason; nil
// where another object's failure is the reason.
type failures map[wanted.Object]error

func (f failures) any(objects []wanted.Object) bool {
	return slices.ContainsFunc(objects, func(o wanted.Object) bool {
		_, failed := f[o]
		return failed
	})
}

// skip notes an object that another one's failure keeps back. A record is
// written twice: its own reason stays.
func (f failures) skip(o wanted.Object) {
	if _, ok := f[o]; !ok {
		f[o] = nil
	}
}

// errors are the reasons, in a fixed order.
func (f failures) errors() []error {
	var errs []error
	for _, err := range f {
		if err != nil {
			errs = append(errs, err)
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errs
}

// Objects of requests that are no object of a State.
const (
	kindAgent   wanted.Kind = "agent"
	kindSession wanted.Kind = "session"
	kindLock    wanted.Kind = "lock"
)

func agentObject() wanted.Object   { return wanted.Object{Kind: kindAgent, Name: "self"} }
func sessionObject() wanted.Object { return wanted.Object{Kind: kindSession, Name: "lock"} }
func lockObject(s wanted.State) wanted.Object {
	return wanted.Object{Kind: kindLock, Name: s.LockKey()}
}

// explain says what to do about a refused request, and marks what no retry
// mends.
func (s *Setup) explain(o wanted.Object, err error) error {
	enterprise := o.Kind == wanted.KindPartition || o.Kind == wanted.KindNamespace
	switch {
	case err == nil || consulutil.Classify(err) == retry.Retry:
		return err
	case missing(err) && !enterprise:
		// Deleted since it was read. Not wrapped: the next try makes it again.
		return fmt.Errorf("%v", err)
	case consulutil.ACLsDisabled(err):
		return permanent("%w: enable ACLs in Consul; without them there is nothing to set up", err)
	case missing(err), strings.Contains(consulutil.Reason(err), "Consul Enterprise feature"):
		return permanent("%w: admin partitions need Consul Enterprise; leave out -partitions-enabled, CONSUL_PARTITION and CONSUL_NAMESPACE", err)
	case consulutil.UnknownToken(err):
		return permanent("%w: Consul does not know the token: correct CONSUL_HTTP_TOKEN or CONSUL_HTTP_TOKEN_FILE", err)
	case consulutil.Status(err) == http.StatusForbidden:
		return permanent("%w: give the token of CONSUL_HTTP_TOKEN a policy with: %s", err, s.rule(o))
	}
	return permanent("%w", err)
}

func permanent(format string, args ...any) error {
	return &retry.PermanentError{Err: fmt.Errorf(format, args...)}
}

// rule is the ACL rule that requests about an object need.
func (s *Setup) rule(o wanted.Object) string {
	switch o.Kind {
	case wanted.KindPartition, wanted.KindNamespace:
		return `operator = "write"`
	case wanted.KindRecord, kindLock:
		return `key_prefix "` + wanted.KeyPrefix + `" { policy = "write" }`
	case kindSession:
		return `session_prefix "" { policy = "write" }`
	case kindAgent:
		return `agent_prefix "" { policy = "read" }`
	}
	if s.Wanted.Partition == "" || o.Kind == wanted.KindToken || o.Name == wanted.AnonymousPolicy {
		return `acl = "write"`
	}
	return `partition "` + s.Wanted.Partition + `" { namespace_prefix "" { acl = "write" } }`
}

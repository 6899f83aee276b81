package setup

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// failures are objects that were not read or written, with the reason; nil
// where another object's failure is the reason.
type failures map[Object]error

func (f failures) any(objects []Object) bool {
	return slices.ContainsFunc(objects, func(o Object) bool {
		_, failed := f[o]
		return failed
	})
}

// skip marks an object that is not written because another one failed. A record is
// written twice: a reason that it has stays.
func (f failures) skip(o Object) {
	if _, ok := f[o]; !ok {
		f[o] = nil
	}
}

// refuse marks the objects that a plan refuses; the plan has the reasons.
func (f failures) refuse(p Plan) {
	for o := range p.Refused {
		f.skip(o)
	}
}

// allow reports whether one of a plan's writes can be made: it needs nothing that has
// failed or was refused.
func (f failures) allow(p Plan) bool {
	blocked := failures{}
	maps.Copy(blocked, f)
	blocked.refuse(p)
	for _, w := range p.Writes {
		if !blocked.any(w.Needs) {
			return true
		}
		blocked.skip(w.Object)
	}
	return false
}

// errors returns the reasons, in a fixed order.
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
	kindAgent   Kind = "agent"
	kindSession Kind = "session"
	kindLock    Kind = "lock"
)

func agentObject() Object   { return Object{Kind: kindAgent, Name: "self"} }
func sessionObject() Object { return Object{Kind: kindSession, Name: "lock"} }
func lockObject(s State) Object {
	return Object{Kind: kindLock, Name: s.lockKey()}
}

// explain notices the ACL rule that a refused request needs, for consulutil.Advise, and
// makes a refusal that a retry cannot change a *retry.PermanentError.
func (s *Setup) explain(o Object, err error) error {
	enterprise := o.Kind == kindPartition || o.Kind == kindNamespace
	switch {
	case err == nil || consulutil.Classify(err).Retryable():
		return err
	case missing(err) && !enterprise:
		// Deleted since it was read. Not wrapped: the next try makes it again.
		return fmt.Errorf("%v", err)
	case missing(err):
		return permanent("%w: %s", err, consulutil.WithoutPartitions)
	}
	return permanent("%w", consulutil.Needs(err, s.rule(o)))
}

func permanent(format string, args ...any) error {
	return &retry.PermanentError{Err: fmt.Errorf(format, args...)}
}

// rule returns the ACL rule that requests about an object need.
func (s *Setup) rule(o Object) string {
	switch o.Kind {
	case kindPartition, kindNamespace:
		return `operator = "write"`
	case kindLock:
		return KeyRule
	case kindSession:
		return consulutil.SessionRule
	case kindNode:
		return `node_prefix "" { policy = "write" }`
	case kindAgent:
		return `agent_prefix "" { policy = "read" }`
	}
	if s.Wanted.Partition == "" || o.Kind == kindToken || o.Name == anonymousPolicy {
		return `acl = "write"`
	}
	return `partition "` + s.Wanted.Partition + `" { namespace_prefix "" { acl = "write" } }`
}

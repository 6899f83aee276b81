package aclrules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/aclrules/policy"
)

// Access is what a query asks for.
type Access string

// The kinds of access. ListAccess and WritePrefix are for keys only;
// WritePrefix asks for everything below a segment.
const (
	ReadAccess  Access = "read"
	ListAccess  Access = "list"
	WriteAccess Access = "write"
	WritePrefix Access = "write-prefix"
)

// needs is the level that a rule must have to grant the access.
func (a Access) needs() policy.Level {
	switch a {
	case ReadAccess:
		return policy.Read
	case ListAccess:
		return policy.List
	}
	return policy.Write
}

// Query asks whether a resource may be accessed. Segment does not count for a
// scalar resource.
type Query struct {
	Resource policy.Resource
	Segment  string
	Access   Access
}

// String is RESOURCE[:SEGMENT] ACCESS, as ParseQuery takes it.
func (q Query) String() string {
	if q.Segment == "" {
		return string(q.Resource) + " " + string(q.Access)
	}
	return string(q.Resource) + ":" + q.Segment + " " + string(q.Access)
}

// Check returns what is wrong with the query, as the server would refuse it.
func (q Query) Check() error {
	var known []string
	for _, r := range slices.Concat(policy.Scalars(), policy.Segmented(), []policy.Resource{policy.Intention}) {
		known = append(known, string(r))
	}
	slices.Sort(known)
	if !slices.Contains(known, string(q.Resource)) {
		return fmt.Errorf("resource %q: want one of %s%s", q.Resource, strings.Join(known, ", "), policy.Hint(string(q.Resource), known))
	}
	allowed := []string{"read", "write"}
	if q.Resource == policy.Key {
		allowed = []string{"read", "list", "write", "write-prefix"}
	}
	if !slices.Contains(allowed, string(q.Access)) {
		return fmt.Errorf("access %q to %s: want one of %s", q.Access, q.Resource, strings.Join(allowed, ", "))
	}
	return nil
}

// ParseQuery reads RESOURCE[:SEGMENT] and ACCESS. The segment is all behind the
// first colon.
func ParseQuery(what, access string) (Query, error) {
	resource, segment, _ := strings.Cut(what, ":")
	q := Query{Resource: policy.Resource(resource), Segment: segment, Access: Access(access)}
	return q, q.Check()
}

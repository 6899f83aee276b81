package aclrules

import (
	"fmt"
	"slices"
	"strings"
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

// needs returns the level that a rule must have to grant the access.
func (a Access) needs() Level {
	switch a {
	case ReadAccess:
		return LevelRead
	case ListAccess:
		return LevelList
	}
	return LevelWrite
}

// Query asks whether a resource may be accessed. Segment does not count for a
// scalar resource.
type Query struct {
	Resource Resource
	Segment  string
	Access   Access
}

// String returns RESOURCE[:SEGMENT] ACCESS, as ParseQuery takes it.
func (q Query) String() string {
	if q.Segment == "" {
		return string(q.Resource) + " " + string(q.Access)
	}
	return string(q.Resource) + ":" + q.Segment + " " + string(q.Access)
}

// check returns what is wrong with the query, as the server would refuse it.
func (q Query) check() error {
	var known []string
	for _, r := range slices.Concat(Scalars(), Segmented(), []Resource{Intention}) {
		known = append(known, string(r))
	}
	slices.Sort(known)
	if !slices.Contains(known, string(q.Resource)) {
		return fmt.Errorf("resource %q: want one of %s%s", q.Resource, strings.Join(known, ", "),
			hint(string(q.Resource), known))
	}
	allowed := []string{"read", "write"}
	if q.Resource == Key {
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
	q := Query{Resource: Resource(resource), Segment: segment, Access: Access(access)}
	return q, q.check()
}

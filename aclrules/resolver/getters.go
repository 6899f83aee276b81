package resolver

import (
	"context"
	"time"
)

// Link points to a policy or a role, by ID, or by name where the ID is empty.
type Link struct{ ID, Name string }

// label is how a link is called in a source.
func (l Link) label() string {
	if l.Name != "" {
		return l.Name
	}
	return l.ID
}

// Policy is a policy as Consul keeps it. An empty list of datacenters is all.
type Policy struct {
	ID, Name, Rules string
	Datacenters     []string
}

// ServiceIdentity is a service identity of a token or role.
type ServiceIdentity struct {
	Name        string
	Datacenters []string
}

// NodeIdentity is a node identity of a token or role.
type NodeIdentity struct{ Name, Datacenter string }

// TemplatedPolicy is a templated policy of a token or role; Name is its only
// variable, empty where it has none.
type TemplatedPolicy struct {
	Template, Name string
	Datacenters    []string
}

// Grants are what a token or a role links to.
type Grants struct {
	Policies          []Link
	Roles             []Link // of tokens only
	ServiceIdentities []ServiceIdentity
	NodeIdentities    []NodeIdentity
	TemplatedPolicies []TemplatedPolicy
}

// Role is a role as Consul keeps it. Roles do not nest.
type Role struct {
	ID, Name string
	Grants
}

// Token is a token without its secret.
type Token struct {
	Accessor, Description string
	Grants
	// Expires is zero for a token that does not.
	Expires time.Time
}

// AuthMethod is what matters of an auth method.
type AuthMethod struct {
	Name, Type string
	// EntityDetails and EntityTags: an aws-iam method reads the entity's path and
	// these tags of it.
	EntityDetails bool
	EntityTags    []string
}

// BindingRule is a binding rule of an auth method. Variable is the templated
// policy's name.
type BindingRule struct{ ID, Selector, BindType, BindName, Variable string }

// Policies reads policies. The error of one that does not exist matches
// ErrDangling, of one that may not be read ErrUnreadable.
type Policies interface {
	Policy(ctx context.Context, l Link) (Policy, error)
}

// Roles reads roles; errors as those of Policies.
type Roles interface {
	Role(ctx context.Context, l Link) (Role, error)
}

// Tokens reads a token by its accessor; an empty one is the token in whose name
// everything is read. The error of one that does not exist matches ErrNotFound.
type Tokens interface {
	Token(ctx context.Context, accessor string) (Token, error)
}

// Logins reads what decides about a login.
type Logins interface {
	AuthMethod(ctx context.Context, name string) (AuthMethod, error)
	BindingRules(ctx context.Context, method string) ([]BindingRule, error)
}

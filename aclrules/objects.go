package aclrules

import (
	"context"
	"time"
)

// Link points to a policy or a role, by ID, or by name where the ID is empty.
type Link struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
}

// label returns how a link is called in a source.
func (l Link) label() string {
	if l.Name != "" {
		return l.Name
	}
	return l.ID
}

// Policy is a policy as Consul keeps it. An empty list of datacenters is all.
type Policy struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Rules       string   `json:"rules"`
	Datacenters []string `json:"datacenters,omitempty"`
}

// ServiceIdentity is a service identity of a token or role.
type ServiceIdentity struct {
	Name        string   `json:"name"`
	Datacenters []string `json:"datacenters,omitempty"`
}

// NodeIdentity is a node identity of a token or role.
type NodeIdentity struct {
	Name       string `json:"name"`
	Datacenter string `json:"datacenter"`
}

// TemplatedPolicy is a templated policy of a token or role; Name is its only
// variable, empty where it has none.
type TemplatedPolicy struct {
	Template    string   `json:"template"`
	Name        string   `json:"name,omitempty"`
	Datacenters []string `json:"datacenters,omitempty"`
}

// Grants are what a token or a role links to. Roles are of tokens only.
type Grants struct {
	Policies          []Link            `json:"policies,omitempty"`
	Roles             []Link            `json:"roles,omitempty"`
	ServiceIdentities []ServiceIdentity `json:"service_identities,omitempty"`
	NodeIdentities    []NodeIdentity    `json:"node_identities,omitempty"`
	TemplatedPolicies []TemplatedPolicy `json:"templated_policies,omitempty"`
}

// Role is a role as Consul keeps it. Roles do not nest.
type Role struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Grants
}

// Anonymous is the accessor of the token of requests without one.
const Anonymous = "00000000-0000-0000-0000-000000000002"

// Token is a token without its secret.
type Token struct {
	Accessor    string `json:"accessor"`
	Description string `json:"description,omitempty"`
	Grants
	// Expires is zero for a token that does not.
	Expires time.Time `json:"expires,omitzero"`
}

// AuthMethod is what matters of an auth method.
type AuthMethod struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// EntityDetails and EntityTags: an aws-iam method reads the entity's path and
	// these tags of it.
	EntityDetails bool     `json:"entity_details,omitempty"`
	EntityTags    []string `json:"entity_tags,omitempty"`
	// Values and Lists are the names, in selectors, of the claims that a jwt or
	// oidc method reads.
	Values []string `json:"values,omitempty"`
	Lists  []string `json:"lists,omitempty"`
}

// BindingRule is a binding rule of an auth method. Variable is the templated
// policy's name.
type BindingRule struct {
	ID       string `json:"id"`
	Selector string `json:"selector,omitempty"`
	BindType string `json:"bind_type"`
	BindName string `json:"bind_name"`
	Variable string `json:"variable,omitempty"`
}

// Objects reads ACL objects. The error of a policy, role or template that does not exist
// matches ErrDangling, that of a token ErrNotFound; of one that may not be read
// ErrUnreadable.
type Objects interface {
	Policy(ctx context.Context, l Link) (Policy, error)
	Role(ctx context.Context, l Link) (Role, error)
	// Token reads a token by its accessor; an empty one is the token in whose name
	// everything is read.
	Token(ctx context.Context, accessor string) (Token, error)
	// Template reads the text of a templated policy, in which {{.Name}} stands for the
	// variable.
	Template(ctx context.Context, name string) (string, error)
	// AuthMethod reads an auth method with its binding rules.
	AuthMethod(ctx context.Context, name string) (AuthMethod, []BindingRule, error)
}

package setup

import (
	"time"

	"github.com/hashicorp/consul/api"
)

// Kind is what an object is, as messages call it.
type Kind string

// The kinds of objects.
const (
	kindPartition Kind = "partition"
	kindNamespace Kind = "namespace"
	kindPolicy    Kind = "policy"
	kindRole      Kind = "role"
	kindMethod    Kind = "auth method"
	kindRule      Kind = "binding rule"
	kindToken     Kind = "token"
	kindRecord    Kind = "record"
	kindNode      Kind = "node"
)

// Object names one object. A binding rule has no name: its method and its description
// serve as one.
type Object struct {
	Kind Kind
	Name string
}

// String returns kind and name, for messages.
func (o Object) String() string { return string(o.Kind) + " " + o.Name }

// Scope is where an Enterprise object lives. Both are empty without admin
// partitions, and nothing is sent then.
type Scope struct{ Partition, Namespace string }

// State is everything that setup wants. A further generation is another State,
// no other code.
type State struct {
	// Cluster is the ARN of the controller's cluster.
	Cluster string
	// Name distinguishes the controllers of one cluster, which run side by side while
	// its tasks change the generation; empty for the agent generation.
	Name string
	// Partition is the admin partition that the cluster is assigned to; empty
	// without Enterprise partitions.
	Partition string
	// Keys is the KV prefix of the lock, with a slash at its end.
	Keys     string
	Policies []Policy
	Roles    []Role
	Methods  []AuthMethod
	Rules    []BindingRule
	// Anonymous is what the anonymous token gets, which requests without a token have, in
	// the primary datacenter; nil grants nothing, and an existing grant is reported.
	Anonymous *Policy
	// Node is the node of all tasks' services; nil wants none. It needs no ACLs: with it,
	// servers that have them disabled are no error.
	Node *Node
}

// Node is a wanted node of the catalog. Its address and its mark as a node without an
// agent are ours, and everything else in it the operator's.
type Node struct {
	Name string
	// Address is an IP address; an empty one is any.
	Address string
	Scope   Scope
}

// Policy is a wanted ACL policy. Its rules are ours and are corrected;
// description and datacenters of an existing one are the operator's.
type Policy struct {
	Name, Description, Rules string
	Scope                    Scope
	// Shared policies belong to other programs as well. An existing one is left
	// as it is.
	Shared bool
}

// Role is a wanted role: Policies are linked to it, whatever else is.
type Role struct {
	Name, Description string
	Policies          []string
	Scope             Scope
}

// AuthMethod is a wanted method of type aws-iam. Ours are Type,
// EnableIAMEntityDetails, a MaxTokenTTL that a controller set, and that the lists hold at least what is here; every
// other field of an existing one is the operator's.
type AuthMethod struct {
	Name, Description string
	// Principals are the role ARNs to trust, EntityTags the role's tags that
	// binding rules read.
	Principals, EntityTags []string
	// TokenTTL is the wanted MaxTokenTTL, 0 for none; with ForceTTL also while there are
	// tokens that are not replaced before they expire.
	TokenTTL time.Duration
	ForceTTL bool
	// NamespaceRules are for Enterprise.
	NamespaceRules []api.ACLAuthMethodNamespaceRule
	Scope          Scope
}

// BindingRule is a wanted rule of a method. An empty Selector leaves the
// selector of an existing rule to the operator, who may narrow what it binds.
type BindingRule struct {
	Method, Description, Selector string
	BindType                      api.BindingRuleBindType
	BindName                      string
	Scope                         Scope
}

// Object returns the rule's name in messages and dependencies.
func (b BindingRule) Object() Object {
	return Object{kindRule, b.Method + ": " + b.Description}
}

// anonymousToken is the accessor ID of the anonymous token in every Consul.
const anonymousToken = "00000000-0000-0000-0000-000000000002"

// lockKey returns the KV key of the lock around all writes of setup.
func (s State) lockKey() string { return s.keys() + "lock" }

// controller returns the name of the controller in its records.
func (s State) controller() string {
	if s.Name == "" {
		return s.Cluster
	}
	return s.Cluster + "/" + s.Name
}

// keys returns the prefix of the keys, another one for each partition, since its methods are.
func (s State) keys() string {
	if s.Partition == "" {
		return s.Keys
	}
	return s.Keys + "partition/" + s.Partition + "/"
}

// globalScope returns where the lock and the anonymous token live. The lock is never in the
// cluster's own partition, which has no server whose node a session could hang on.
func (s State) globalScope() Scope {
	if s.Partition == "" {
		return Scope{}
	}
	return Scope{Partition: defaultPartition, Namespace: defaultNamespace}
}

// withoutACLs returns the state of servers without ACLs.
func (s State) withoutACLs() State {
	return State{Cluster: s.Cluster, Name: s.Name, Partition: s.Partition, Keys: s.Keys, Node: s.Node}
}

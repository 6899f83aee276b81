package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/consulutil"
)

// readFunc reads an object by its name, or a list.
type readFunc[V any] func(name string, q *api.QueryOptions) (V, *api.QueryMeta, error)

// get reads one object; its error is in failed.
func get[V any](
	ctx context.Context, s *Setup, failed failures, o Object, scope Scope, name string, read readFunc[V],
) (v V, ok bool) {
	v, _, err := read(name, s.queryOptions(ctx, scope))
	if err != nil {
		failed[o] = fmt.Errorf("read %s: %w", o, s.explain(o, err))
	}
	return v, err == nil
}

// read reads what Consul has of a state. What cannot be read is in failed and
// not in found.
func (s *Setup) read(ctx context.Context, state State) (found Observed, failed failures) {
	failed = failures{}
	found = Observed{
		Policies: map[string]*api.ACLPolicy{}, Roles: map[string]*api.ACLRole{},
		Methods: map[string]*api.ACLAuthMethod{}, Rules: map[string][]*api.ACLBindingRule{},
		Nodes:     map[string]*api.Node{},
		Unrenewed: map[string][]string{},
	}
	if state.Partition != "" {
		o := Object{Kind: kindPartition, Name: state.Partition}
		p, ok := get(ctx, s, failed, o, Scope{}, state.Partition,
			func(name string, q *api.QueryOptions) (*api.Partition, *api.QueryMeta, error) {
				return s.Client.Partitions().Read(ctx, name, q)
			})
		if !ok {
			return found, failed
		}
		found.NoPartition = p == nil
	}
	acl := s.Client.ACL()
	for _, p := range state.Policies {
		file(ctx, s, found, failed, found.Policies, Object{Kind: kindPolicy, Name: p.Name}, p.Scope, p.Name,
			acl.PolicyReadByName)
	}
	for _, r := range state.Roles {
		file(ctx, s, found, failed, found.Roles, Object{Kind: kindRole, Name: r.Name}, r.Scope, r.Name,
			acl.RoleReadByName)
	}
	for _, m := range state.Methods {
		s.readMethod(ctx, found, failed, m)
	}
	for _, r := range state.Rules {
		if _, done := found.Rules[r.Method]; !done {
			file(ctx, s, found, failed, found.Rules, r.Object(), r.Scope, r.Method, acl.BindingRuleList)
		}
	}
	if p := state.Anonymous; p != nil {
		if policy, ok := get(ctx, s, failed, Object{Kind: kindPolicy, Name: p.Name}, p.Scope, p.Name,
			acl.PolicyReadByName); ok {
			found.Policies[p.Name] = policy
		}
		found.Anonymous, _ = get(ctx, s, failed, Object{Kind: kindToken, Name: anonymousToken}, p.Scope, anonymousToken,
			acl.TokenRead)
	}
	if s.Wanted.Anonymous == nil { // for a report only: setup does not fail without
		found.Anonymous, _, _ = acl.TokenRead(anonymousToken, s.queryOptions(ctx, state.globalScope()))
	}
	if n := state.Node; n != nil {
		file(ctx, s, found, failed, found.Nodes, Object{Kind: kindNode, Name: n.Name}, n.Scope, n.Name, s.readNode)
	}
	return found, failed
}

// readMethod reads an auth method, and if its tokens may begin to expire, whose are not replaced.
func (s *Setup) readMethod(ctx context.Context, found Observed, failed failures, m AuthMethod) {
	o := Object{Kind: kindMethod, Name: m.Name}
	file(ctx, s, found, failed, found.Methods, o, m.Scope, m.Name, s.Client.ACL().AuthMethodRead)
	if have := found.Methods[m.Name]; have == nil || have.MaxTokenTTL != 0 || m.TokenTTL == 0 || m.ForceTTL {
		return
	}
	var err error
	if found.Unrenewed[m.Name], err = s.readUnrenewed(ctx, m); err != nil {
		failed[o] = fmt.Errorf("list tokens of %s: %w", o, s.explain(o, err))
		delete(found.Methods, m.Name)
	}
}

// file reads an object of the partition into a map. Without the partition nothing in it
// exists.
func file[V any](
	ctx context.Context, s *Setup, found Observed, failed failures, into map[string]V, o Object, scope Scope,
	name string, read readFunc[V],
) {
	var v V
	ok := found.NoPartition
	if !ok {
		v, ok = get(ctx, s, failed, o, scope, name, read)
	}
	if ok {
		into[name] = v
	}
}

// readNode reads a node without its services: those of all the cluster's tasks may be
// on it.
func (s *Setup) readNode(name string, q *api.QueryOptions) (*api.Node, *api.QueryMeta, error) {
	q.Filter = fmt.Sprintf("Node == %q", name)
	nodes, meta, err := s.Client.Catalog().Nodes(q)
	if err != nil || len(nodes) == 0 {
		return nil, meta, err
	}
	return nodes[0], meta, nil
}

// readNamespaces reads what compareNamespaces needs.
func (s *Setup) readNamespaces(ctx context.Context) (found Observed, failed failures) {
	found, failed = Observed{Policies: map[string]*api.ACLPolicy{}}, failures{}
	p := s.Wanted.namespacePolicy()
	file(ctx, s, found, failed, found.Policies, Object{Kind: kindPolicy, Name: p.Name}, p.Scope, p.Name,
		s.Client.ACL().PolicyReadByName)
	list := Object{Kind: kindNamespace, Name: "list of " + p.Scope.Partition}
	found.Namespaces, _ = get(ctx, s, failed, list, Scope{Partition: p.Scope.Partition}, "",
		func(_ string, q *api.QueryOptions) ([]*api.Namespace, *api.QueryMeta, error) {
			return s.Client.Namespaces().List(q)
		})
	return found, failed
}

// primary asks the agent whether its datacenter is the primary one: its answer
// has that under Config, older and newer ones under DebugConfig.
func (s *Setup) primary(ctx context.Context) (bool, error) {
	var self struct {
		Config, DebugConfig struct{ Datacenter, PrimaryDatacenter string }
	}
	if _, err := s.Client.Raw().Query("/v1/agent/self", &self, s.queryOptions(ctx, Scope{})); err != nil {
		return false, fmt.Errorf("read the agent's datacenter: %w", s.explain(agentObject(), err))
	}
	primary := cmp.Or(self.Config.PrimaryDatacenter, self.DebugConfig.PrimaryDatacenter)
	if self.Config.Datacenter == "" || primary == "" {
		return false,
			errors.New("read the agent's datacenter: the answer of /v1/agent/self has no Datacenter or no " +
				"PrimaryDatacenter")
	}
	return self.Config.Datacenter == primary, nil
}

// missing reports whether Consul has no such thing; the API client turns the 404
// of most reads into nil.
func missing(err error) bool { return consulutil.Status(err) == http.StatusNotFound }

// queryOptions returns the options of a consistent read: a server that was just restarted knows no
// method yet, and setup would create what it does not find, and overwrite others' objects.
func (s *Setup) queryOptions(ctx context.Context, scope Scope) *api.QueryOptions {
	q := &api.QueryOptions{Partition: scope.Partition, Namespace: scope.Namespace, RequireConsistent: true}
	return q.WithContext(ctx)
}

package setup

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/controller/wanted"
)

// read reads what Consul has of a state. What cannot be read is in failed and
// not in found.
func (s *Setup) read(ctx context.Context, state wanted.State) (found wanted.Found, failed failures) {
	failed = failures{}
	found = wanted.Found{
		Policies: map[string]*api.ACLPolicy{}, Roles: map[string]*api.ACLRole{},
		Methods: map[string]*api.ACLAuthMethod{}, Rules: map[string][]*api.ACLBindingRule{},
	}
	if state.Partition != "" && !s.readPartition(ctx, state.Partition, &found, failed) {
		return found, failed
	}
	s.readGrants(ctx, state, &found, failed)
	for _, m := range state.Methods {
		method, err := inPartition(found, func() (*api.ACLAuthMethod, *api.QueryMeta, error) {
			return s.Client.ACL().AuthMethodRead(m.Name, s.queryOptions(ctx, m.Scope))
		})
		keep(s, found.Methods, m.Name, method, failed, wanted.Object{Kind: wanted.KindMethod, Name: m.Name}, err)
	}
	for _, r := range state.Rules {
		if _, done := found.Rules[r.Method]; done {
			continue
		}
		rules, err := inPartition(found, func() ([]*api.ACLBindingRule, *api.QueryMeta, error) {
			return s.Client.ACL().BindingRuleList(r.Method, s.queryOptions(ctx, r.Scope))
		})
		keep(s, found.Rules, r.Method, rules, failed, r.Object(), err)
	}
	s.readRecords(ctx, state, &found, failed)
	s.readAnonymous(ctx, state, &found, failed)
	return found, failed
}

// readGrants reads policies and roles.
func (s *Setup) readGrants(ctx context.Context, state wanted.State, found *wanted.Found, failed failures) {
	for _, p := range state.Policies {
		policy, err := inPartition(*found, func() (*api.ACLPolicy, *api.QueryMeta, error) {
			return s.Client.ACL().PolicyReadByName(p.Name, s.queryOptions(ctx, p.Scope))
		})
		keep(s, found.Policies, p.Name, policy, failed, wanted.Object{Kind: wanted.KindPolicy, Name: p.Name}, err)
	}
	for _, r := range state.Roles {
		role, err := inPartition(*found, func() (*api.ACLRole, *api.QueryMeta, error) {
			return s.Client.ACL().RoleReadByName(r.Name, s.queryOptions(ctx, r.Scope))
		})
		keep(s, found.Roles, r.Name, role, failed, wanted.Object{Kind: wanted.KindRole, Name: r.Name}, err)
	}
}

// inPartition reads unless the partition does not exist: then nothing in it
// does.
func inPartition[V any](found wanted.Found, read func() (V, *api.QueryMeta, error)) (v V, err error) {
	if found.NoPartition {
		return v, nil
	}
	v, _, err = read()
	return v, err
}

// keep files what was read, or why it was not.
func keep[V any](s *Setup, into map[string]V, name string, v V, failed failures, o wanted.Object, err error) {
	if err != nil {
		failed[o] = fmt.Errorf("read %s: %w", o, s.explain(o, err))
		return
	}
	into[name] = v
}

// readPartition reports whether the rest can be read.
func (s *Setup) readPartition(ctx context.Context, name string, found *wanted.Found, failed failures) bool {
	o := wanted.Object{Kind: wanted.KindPartition, Name: name}
	p, _, err := s.Client.Partitions().Read(ctx, name, s.queryOptions(ctx, wanted.Scope{}))
	if err != nil {
		failed[o] = fmt.Errorf("read %s: %w", o, s.explain(o, err))
		return false
	}
	found.NoPartition = p == nil
	return true
}

func (s *Setup) readRecords(ctx context.Context, state wanted.State, found *wanted.Found, failed failures) {
	o := wanted.Object{Kind: wanted.KindRecord, Name: state.RecordKey()}
	pairs, _, err := s.Client.KV().List(state.RecordPrefix(), s.queryOptions(ctx, state.KeyScope()))
	if err != nil {
		failed[o] = fmt.Errorf("read %s: %w", o, s.explain(o, err))
		return
	}
	found.Records = map[string][]byte{}
	for _, p := range pairs {
		found.Records[p.Key] = p.Value
	}
}

func (s *Setup) readAnonymous(ctx context.Context, state wanted.State, found *wanted.Found, failed failures) {
	if state.Anonymous == nil {
		return
	}
	p := state.Anonymous.Policy
	policy, _, err := s.Client.ACL().PolicyReadByName(p.Name, s.queryOptions(ctx, p.Scope))
	keep(s, found.Policies, p.Name, policy, failed, wanted.Object{Kind: wanted.KindPolicy, Name: p.Name}, err)
	o := wanted.Object{Kind: wanted.KindToken, Name: wanted.AnonymousToken}
	token, _, err := s.Client.ACL().TokenRead(wanted.AnonymousToken, s.queryOptions(ctx, p.Scope))
	if err != nil {
		failed[o] = fmt.Errorf("read %s: %w", o, s.explain(o, err))
		return
	}
	found.Anonymous = token
}

func (s *Setup) readNamespaces(ctx context.Context) (found wanted.FoundNamespaces, failed failures) {
	failed = failures{}
	p := s.Wanted.NamespacePolicy()
	var err error
	if found.Policy, _, err = s.Client.ACL().PolicyReadByName(p.Name, s.queryOptions(ctx, p.Scope)); err != nil {
		o := wanted.Object{Kind: wanted.KindPolicy, Name: p.Name}
		failed[o] = fmt.Errorf("read %s: %w", o, s.explain(o, err))
	}
	if found.Namespaces, _, err = s.Client.Namespaces().List(s.queryOptions(ctx, wanted.Scope{Partition: p.Scope.Partition})); err != nil {
		o := wanted.Object{Kind: wanted.KindNamespace, Name: "list of " + p.Scope.Partition}
		failed[o] = fmt.Errorf("read %s: %w", o, s.explain(o, err))
	}
	return found, failed
}

// primary asks the agent whether its datacenter is the primary one: its answer
// has that under Config, older and newer ones under DebugConfig.
func (s *Setup) primary(ctx context.Context) (bool, error) {
	var self struct {
		Config, DebugConfig struct{ Datacenter, PrimaryDatacenter string }
	}
	if _, err := s.Client.Raw().Query("/v1/agent/self", &self, s.queryOptions(ctx, wanted.Scope{})); err != nil {
		return false, fmt.Errorf("ask the agent for its datacenter: %w", s.explain(agentObject(), err))
	}
	primary := self.Config.PrimaryDatacenter
	if primary == "" {
		primary = self.DebugConfig.PrimaryDatacenter
	}
	if self.Config.Datacenter == "" || primary == "" {
		return false, errors.New("ask the agent for its datacenter: the answer of /v1/agent/self names no datacenter or no primary one")
	}
	return self.Config.Datacenter == primary, nil
}

// missing reports whether Consul has no such thing; the API client turns the 404
// of most reads into nil.
func missing(err error) bool { return consulutil.Status(err) == http.StatusNotFound }

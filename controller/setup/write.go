package setup

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/consul/api"
)

// errChanged asks for another try.
var errChanged = errors.New("another process changed it since it was read")

// write makes one write of a plan, under the lock. An ACL object is read once more
// before: operators and other programs write without our lock, and so the time in which
// a change of theirs can be lost is one request.
func (s *Setup) write(ctx context.Context, l *lock, w Write) error {
	put, modified := s.writer(ctx, w)
	if modified != nil {
		was, is, err := modified()
		if err == nil && was != is {
			err = errChanged
		}
		if err != nil {
			return err
		}
	}
	if sinceBoot() >= l.end { // the context's timer stops while the machine is suspended
		return errLost
	}
	return put()
}

// hidden reports whether a write that made a node changed nothing: Consul lets a token
// without a rule for nodes register a node as it is, and shows the token none.
func (s *Setup) hidden(ctx context.Context, w Write) bool {
	if w.Object.Kind != kindNode || !w.Create {
		return false
	}
	node, _, err := s.readNode(w.Object.Name, s.queryOptions(ctx, w.Scope))
	return err == nil && node == nil
}

// writer returns how the value of a write is written. For an ACL object that may exist,
// modified returns the indexes of its last change when it was read and now; 0 means that
// it does not exist.
func (s *Setup) writer(ctx context.Context, w Write) (put func() error, modified func() (was, is uint64, err error)) {
	acl, read, options := s.Client.ACL(), s.queryOptions(ctx, w.Scope), s.writeOptions(ctx, w.Scope)
	switch v := w.Value.(type) {
	case *api.Partition:
		return func() error { _, _, err := s.Client.Partitions().Create(ctx, v, options); return err }, nil
	case *api.Namespace:
		return putter(w, v, options, s.Client.Namespaces().Create, s.Client.Namespaces().Update), nil
	case *api.CatalogRegistration:
		return func() error { _, err := s.Client.Catalog().Register(v, options); return err }, nil
	case *api.ACLPolicy:
		return putter(w, v, options, acl.PolicyCreate, acl.PolicyUpdate),
			indexes(v, v.Name, read, acl.PolicyReadByName, func(p *api.ACLPolicy) uint64 { return p.ModifyIndex })
	case *api.ACLRole:
		return putter(w, v, options, acl.RoleCreate, acl.RoleUpdate),
			indexes(v, v.Name, read, acl.RoleReadByName, func(r *api.ACLRole) uint64 { return r.ModifyIndex })
	case *api.ACLAuthMethod:
		return putter(w, v, options, acl.AuthMethodCreate, acl.AuthMethodUpdate),
			indexes(v, v.Name, read, acl.AuthMethodRead, func(m *api.ACLAuthMethod) uint64 { return m.ModifyIndex })
	case *api.ACLBindingRule:
		put = putter(w, v, options, acl.BindingRuleCreate, acl.BindingRuleUpdate)
		if w.Create || w.Kind == kindRecord {
			return put, nil // its ID will be a new one; a record may be written twice
		}
		return put, indexes(v, v.ID, read, acl.BindingRuleRead,
			func(r *api.ACLBindingRule) uint64 { return r.ModifyIndex })
	case *api.ACLToken:
		return putter(w, v, options, nil, acl.TokenUpdate),
			indexes(v, v.AccessorID, read, acl.TokenRead, func(t *api.ACLToken) uint64 { return t.ModifyIndex })
	}
	return func() error { return fmt.Errorf("cannot write a %T", w.Value) }, nil
}

// putFunc creates or updates an object.
type putFunc[T any] func(*T, *api.WriteOptions) (*T, *api.WriteMeta, error)

func putter[T any](w Write, v *T, options *api.WriteOptions, create, update putFunc[T]) func() error {
	if w.Create {
		update = create
	}
	return func() error {
		_, _, err := update(v, options)
		return err
	}
}

func indexes[T any](
	v *T, name string, options *api.QueryOptions, read readFunc[*T], index func(*T) uint64,
) func() (was, is uint64, err error) {
	return func() (was, is uint64, err error) {
		now, _, err := read(name, options)
		if now != nil {
			is = index(now)
		}
		return index(v), is, err
	}
}

func (s *Setup) writeOptions(ctx context.Context, scope Scope) *api.WriteOptions {
	return (&api.WriteOptions{Partition: scope.Partition, Namespace: scope.Namespace}).WithContext(ctx)
}

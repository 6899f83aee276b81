package setup

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/controller/wanted"
)

// errChanged asks for another try.
var errChanged = errors.New("another process changed it since it was read")

// write makes one write of a plan, under the lock.
func (s *Setup) write(ctx context.Context, l *lock, w wanted.Write) (err error) {
	options := s.writeOptions(ctx, w.Scope)
	if err := s.unchanged(ctx, w); err != nil {
		return err
	}
	if sinceBoot() >= l.end { // the context's timer stops while the machine is suspended
		return errLost
	}
	switch v := w.Value.(type) {
	case *api.Partition:
		_, _, err = s.Client.Partitions().Create(ctx, v, options)
	case *api.Namespace:
		err = s.writeNamespace(v, w.Create, options)
	case wanted.Record:
		_, err = s.Client.KV().Put(&api.KVPair{Key: w.Name, Value: v.Encode()}, options)
	case *api.ACLToken:
		_, _, err = s.Client.ACL().TokenUpdate(v, options)
	default:
		err = s.writeACL(w, options)
	}
	return err
}

// unchanged reads once more what operators and other programs write without our
// lock, so that the time in which a change of theirs can be lost is one request.
func (s *Setup) unchanged(ctx context.Context, w wanted.Write) error {
	was, is, err := s.indexes(w, s.queryOptions(ctx, w.Scope))
	if err == nil && was != is {
		err = errChanged
	}
	return err
}

// indexes are those of an object's last change when it was read and now: 0 for what
// was not, or is not there.
func (s *Setup) indexes(w wanted.Write, options *api.QueryOptions) (was, is uint64, err error) {
	acl := s.Client.ACL()
	switch v := w.Value.(type) {
	case *api.ACLPolicy:
		now, _, err := acl.PolicyReadByName(v.Name, options)
		if now == nil {
			now = &api.ACLPolicy{}
		}
		return v.ModifyIndex, now.ModifyIndex, err
	case *api.ACLRole:
		now, _, err := acl.RoleReadByName(v.Name, options)
		if now == nil {
			now = &api.ACLRole{}
		}
		return v.ModifyIndex, now.ModifyIndex, err
	case *api.ACLAuthMethod:
		now, _, err := acl.AuthMethodRead(v.Name, options)
		if now == nil {
			now = &api.ACLAuthMethod{}
		}
		return v.ModifyIndex, now.ModifyIndex, err
	case *api.ACLBindingRule:
		if w.Create {
			return 0, 0, nil // its ID will be a new one
		}
		now, _, err := acl.BindingRuleRead(v.ID, options)
		if now == nil {
			now = &api.ACLBindingRule{}
		}
		return v.ModifyIndex, now.ModifyIndex, err
	case *api.ACLToken:
		now, _, err := acl.TokenRead(v.AccessorID, options)
		if now == nil {
			now = &api.ACLToken{}
		}
		return v.ModifyIndex, now.ModifyIndex, err
	}
	return 0, 0, nil
}

func (s *Setup) writeNamespace(n *api.Namespace, create bool, options *api.WriteOptions) (err error) {
	if create {
		_, _, err = s.Client.Namespaces().Create(n, options)
	} else {
		_, _, err = s.Client.Namespaces().Update(n, options)
	}
	return err
}

func (s *Setup) writeACL(w wanted.Write, options *api.WriteOptions) (err error) {
	acl := s.Client.ACL()
	switch v := w.Value.(type) {
	case *api.ACLPolicy:
		if w.Create {
			_, _, err = acl.PolicyCreate(v, options)
		} else {
			_, _, err = acl.PolicyUpdate(v, options)
		}
	case *api.ACLRole:
		if w.Create {
			_, _, err = acl.RoleCreate(v, options)
		} else {
			_, _, err = acl.RoleUpdate(v, options)
		}
	case *api.ACLAuthMethod:
		if w.Create {
			_, _, err = acl.AuthMethodCreate(v, options)
		} else {
			_, _, err = acl.AuthMethodUpdate(v, options)
		}
	case *api.ACLBindingRule:
		if w.Create {
			_, _, err = acl.BindingRuleCreate(v, options)
		} else {
			_, _, err = acl.BindingRuleUpdate(v, options)
		}
	default:
		err = fmt.Errorf("no way to write a %T", v)
	}
	return err
}

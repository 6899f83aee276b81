package setup

import (
	"context"
	"fmt"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/controller/wanted"
)

// write makes one write of a plan.
func (s *Setup) write(ctx context.Context, w wanted.Write) (err error) {
	options := s.writeOptions(ctx, w.Scope)
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

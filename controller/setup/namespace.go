package setup

import (
	"slices"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/aclrules"
)

// namespacePolicy returns the wanted policy of the partition's tasks.
func (s State) namespacePolicy() Policy {
	return Policy{
		Name:        crossNamespacePolicy,
		Description: "Allow service and node reads across namespaces within the partition",
		Rules: `namespace_prefix "" {
  node_prefix "" {
    policy = "read"
  }
  service_prefix "" {
    policy = "read"
  }
}`,
		Scope: Scope{Partition: s.Partition, Namespace: defaultNamespace},
	}
}

// compareNamespaces plans the namespaces that live tasks name: each that is
// missing is made, with the cross-namespace policy as its default, which the
// partition's default namespace gets, too. Other namespaces, and whatever else
// these have, stay.
func (s State) compareNamespaces(names []string, f Observed) (p Plan) {
	want := s.namespacePolicy()
	p.policy(want, f, nil)
	scope, needs := Scope{Partition: s.Partition}, []Object{{kindPolicy, want.Name}}
	for _, name := range sortedUnique(append([]string{defaultNamespace}, names...)) {
		i := slices.IndexFunc(f.Namespaces, func(n *api.Namespace) bool { return aclrules.SameName(n.Name, name) })
		w := Write{Object: Object{kindNamespace, name}, Scope: scope, Needs: needs}
		switch {
		case name == "":
			continue
		case i < 0:
			w.Create = true
			w.Value = &api.Namespace{Name: name, Description: "Created by consul-ecs for the tasks of an ECS cluster",
				ACLs: defaults(nil)}
		case name != defaultNamespace || hasDefault(f.Namespaces[i].ACLs):
			continue
		default:
			fixed := *f.Namespaces[i]
			fixed.ACLs = defaults(fixed.ACLs)
			w.Value, w.Changed = &fixed, []string{"ACLs.PolicyDefaults"}
		}
		p.Writes = append(p.Writes, w)
	}
	return p
}

func hasDefault(acls *api.NamespaceACLConfig) bool {
	return acls != nil &&
		slices.ContainsFunc(acls.PolicyDefaults,
			func(l api.ACLLink) bool { return aclrules.SameName(l.Name, crossNamespacePolicy) })
}

// defaults returns a namespace's default policies and ours.
func defaults(acls *api.NamespaceACLConfig) *api.NamespaceACLConfig {
	var c api.NamespaceACLConfig
	if acls != nil {
		c = *acls
	}
	c.PolicyDefaults = append(slices.Clone(c.PolicyDefaults), api.ACLLink{Name: crossNamespacePolicy})
	return &c
}

package setup

import (
	"cmp"
	"maps"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/config"
)

// noAddress is the address of a node without one: Consul demands an address, and each
// service on the node has its own.
const noAddress = "127.0.0.1"

// node plans the registration of a node, without services.
func (p *Plan) node(want Node, f Observed, needs []Object) {
	found, read := f.Nodes[want.Name]
	if !read {
		return
	}
	fixed := &api.CatalogRegistration{Node: want.Name, Address: want.Address, NodeMeta: map[string]string{},
		Partition: want.Scope.Partition}
	w := Write{Object: Object{kindNode, want.Name}, Value: fixed, Scope: want.Scope, Needs: needs}
	if found == nil {
		w.Create = true
		fixed.Address = cmp.Or(fixed.Address, noAddress)
	} else {
		fixed.ID, fixed.TaggedAddresses, fixed.Locality = found.ID, found.TaggedAddresses, found.Locality
		maps.Copy(fixed.NodeMeta, found.Meta)
		if fixed.Address = cmp.Or(fixed.Address, found.Address); fixed.Address != found.Address {
			w.Changed = append(w.Changed, "Address")
		}
		if found.Meta[config.NodeMetaSynthetic] != "true" {
			w.Changed = append(w.Changed, "Meta")
		}
	}
	fixed.NodeMeta[config.NodeMetaSynthetic] = "true"
	if w.Create || len(w.Changed) > 0 {
		p.Writes = append(p.Writes, w)
	}
}

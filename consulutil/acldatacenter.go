package consulutil

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/aclrules"
)

// Datacenter returns the datacenter that answers. Every token may read it.
func (r *ACLReader) Datacenter(ctx context.Context) (string, error) {
	options := r.options(ctx)
	options.Datacenter = "" // each knows all of them
	var known []string
	_, err := r.client.Raw().Query("/v1/catalog/datacenters", &known, options)
	switch {
	case err != nil:
		return "", fmt.Errorf("list datacenters: %w", err)
	case len(known) == 0:
		return "", errors.New("list datacenters: the server reports none")
	case r.datacenter != "" && !slices.Contains(known, r.datacenter):
		return "", fmt.Errorf("datacenter %q: the server knows %s only", r.datacenter, strings.Join(known, ", "))
	}
	own := known[0] // the nearest
	r.foreign = r.datacenter != "" && r.datacenter != own
	return cmp.Or(r.datacenter, own), nil
}

// DefaultPolicy returns what the server answers where no rule does. Token or, with
// acl:read, the anonymous token has it. Otherwise it is in the header of every answer,
// but that is the asked agent's, not another datacenter's:
// Unknown there.
func (r *ACLReader) DefaultPolicy(ctx context.Context) aclrules.Verdict {
	if r.byDefault == "" {
		// Every datacenter has this token. After an error it stays Unknown.
		_, _ = r.expanded(ctx, aclrules.Anonymous)
	}
	if r.byDefault == "" && !r.foreign {
		if _, meta, err := r.client.Health().Checks("consul", r.options(ctx)); err == nil {
			r.byDefault = meta.DefaultACLPolicy
		}
	}
	for _, v := range []aclrules.Verdict{aclrules.Allowed, aclrules.Denied} {
		if r.byDefault == v.String() {
			return v
		}
	}
	return aclrules.Unknown
}

package admission

import "slices"

// UseSummary is what a definition uses of Consul in one namespace.
type UseSummary struct {
	// Services are registered, and Kinds what the mesh makes of them, such as
	// connect-proxy:web.
	Services []string `json:"services"`
	Kinds    []string `json:"kinds"`
	// Upstreams are services and prepared queries that the task calls.
	Upstreams []string `json:"upstreams"`
	// KV is true when the task reads keys, which begin with one of KeyPrefixes.
	KV          bool     `json:"kv"`
	KeyPrefixes []string `json:"keyPrefixes"`
}

// use is one usage, at its place in the definition. Namespace and Partition are empty
// for the default ones.
type use struct{ Kind, Namespace, Partition, Name, Path string }

// byNamespace are the uses by namespace, each name once and sorted.
func byNamespace(uses []use) map[string]*UseSummary {
	all := map[string]*UseSummary{}
	for _, u := range uses {
		in := all[u.Namespace]
		if in == nil {
			in = &UseSummary{Services: []string{}, Kinds: []string{}, Upstreams: []string{}, KeyPrefixes: []string{}}
			all[u.Namespace] = in
		}
		switch u.Kind {
		case useService:
			in.Services = append(in.Services, u.Name)
		case useUpstream, usePeered, useQuery:
			in.Upstreams = append(in.Upstreams, u.Name)
		case useKeys, useKeyList:
			in.KV, in.KeyPrefixes = true, append(in.KeyPrefixes, u.Name)
		default:
			in.Kinds = append(in.Kinds, u.Kind+":"+u.Name)
		}
	}
	for _, u := range all {
		for _, list := range []*[]string{&u.Services, &u.Kinds, &u.Upstreams, &u.KeyPrefixes} {
			slices.Sort(*list)
			*list = slices.Compact(*list)
		}
	}
	return all
}

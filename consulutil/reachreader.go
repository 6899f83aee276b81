package consulutil

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/reach"
)

// reachReader reads what decides whether one service can call another.
type reachReader struct {
	client *api.Client
	query  func() *api.QueryOptions
	// anonymous says that requests have no token. Consul does not say then that it leaves out what they may not read.
	anonymous bool
}

// ReadReach returns what the servers say about the question. What the token may not read is missing in the facts.
// It returns an error when no server answers, or when the token is unknown.
func ReadReach(ctx context.Context, o Options, q reach.Question) (reach.Facts, error) {
	token, err := EffectiveToken(o)
	if err != nil {
		return reach.Facts{}, err
	}
	c, err := NewClient(o)
	if err != nil {
		return reach.Facts{}, err
	}
	r := reachReader{client: c, anonymous: token == "",
		query: func() *api.QueryOptions { return new(api.QueryOptions).WithContext(ctx) }}
	if _, err := c.Status().LeaderWithQueryOptions(r.query()); err != nil {
		return reach.Facts{}, fmt.Errorf("ask Consul: %w", err)
	}
	f := reach.Facts{
		Now: time.Now(), Roots: r.roots(), Services: map[string]reach.Fact[[]reach.Instance]{},
		Endpoints: map[string]reach.Fact[[]reach.Instance]{}, Intentions: map[string]reach.Fact[reach.Authorization]{},
	}
	if q.SourcePeer == "" {
		f.Caller = r.instances("service", reach.Target{Service: q.Source})
		f.CallerProxies = r.instances("connect", reach.Target{Service: q.Source})
		f.Mesh.Missing, _ = r.entry("mesh", "mesh", `mesh = "read"`, &f.Mesh.Value)
	}
	if q.Peer != "" {
		f.Peering = r.peering(q.Peer)
		f.Chain.Value = reach.ImportedChain(q.Destination, q.Peer)
	} else {
		f.Chain, f.ChainFault = r.chain(q)
	}
	for id, t := range f.Chain.Value.Targets {
		f.Services[id] = r.instances("service", t)
		f.Endpoints[id] = r.instances("connect", t)
		if t.Peer == "" {
			f.Intentions[id] = r.authorization(q, t)
		}
	}
	return f, ctx.Err()
}

// get reads one answer. missing says why there is none, found is false for an object that does not exist.
func (r reachReader) get(path, right string, options *api.QueryOptions, out any) (missing string, found bool,
	meta *api.QueryMeta) {
	meta, err := r.client.Raw().Query(path, out, options)
	switch {
	case err == nil && meta.ResultsFilteredByACLs:
		return "the token may not read all of it: it needs " + right, true, meta
	case err == nil:
		return "", true, meta
	case Status(err) == http.StatusNotFound:
		return "", false, nil
	case Status(err) == http.StatusForbidden && !UnknownToken(err):
		return "the token may not read it: it needs " + right, false, nil
	}
	return err.Error(), false, nil
}

// instances reads those of a target: kind is service for all, or connect for those that a proxy connects to.
func (r reachReader) instances(kind string, t reach.Target) (f reach.Fact[[]reach.Instance]) {
	o := r.options(t)
	o.MergeCentralConfig = true
	if kind == "connect" {
		o.Filter = t.Subset.Filter
	}
	right := fmt.Sprintf("service_prefix %q read and node_prefix \"\" read", t.Service)
	var meta *api.QueryMeta
	f.Missing, _, meta = r.get("/v1/health/"+kind+"/"+url.PathEscape(t.Service), right, o, &f.Value)
	if f.Missing == "" && len(f.Value) == 0 && r.blind(meta) {
		f.Missing = "there is no token, CONSUL_HTTP_TOKEN: it needs " + right
	}
	return f
}

// blind reports whether an empty answer may be one about what requests without a token may not read.
func (r reachReader) blind(meta *api.QueryMeta) bool {
	return r.anonymous && meta.DefaultACLPolicy == "deny"
}

// options returns those of requests about a target. Consul without Enterprise refuses the name of a namespace.
func (r reachReader) options(t reach.Target) *api.QueryOptions {
	o := r.query()
	o.Datacenter, o.Peer = t.Datacenter, t.Peer
	if t.Namespace != "default" && t.Namespace != "" {
		o.Namespace = t.Namespace
	}
	if t.Partition != "default" && t.Partition != "" {
		o.Partition = t.Partition
	}
	return o
}

// chain reads the compiled discovery chain, or the text why it cannot be compiled.
func (r reachReader) chain(q reach.Question) (f reach.Fact[reach.Chain], fault string) {
	o := r.query()
	o.Datacenter = q.Datacenter
	var answer struct{ Chain reach.Chain }
	_, err := r.client.Raw().Query("/v1/discovery-chain/"+url.PathEscape(q.Destination), &answer, o)
	switch {
	case err == nil:
		f.Value = answer.Chain
	case Status(err) == http.StatusForbidden:
		f.Missing = fmt.Sprintf("the token may not read it: it needs service %q read", q.Destination)
	case answered(err, http.StatusInternalServerError, "discovery chain", "protocol", "subset"):
		return f, Reason(err)
	default:
		f.Missing = err.Error()
	}
	return f, ""
}

// authorization reads the intentions of a target, and what the server decides without one.
func (r reachReader) authorization(q reach.Question, t reach.Target) (f reach.Fact[reach.Authorization]) {
	right := fmt.Sprintf("service %q { policy = \"read\" intentions = \"read\" }", t.Service)
	o := r.options(t)
	o.Datacenter = "" // intentions are those of the primary datacenter
	matched, meta, err := r.client.Connect().IntentionMatch(
		&api.IntentionMatch{By: api.IntentionMatchDestination, Names: []string{t.Service}}, o)
	if err != nil {
		f.Missing = "the token may not read it: it needs " + right
		if Status(err) != http.StatusForbidden {
			f.Missing = err.Error()
		}
		return f
	}
	f.Value.DefaultPermission = meta.DefaultACLPolicy != "deny"
	f.Value.Default = f.Value.DefaultPermission
	for _, i := range matched[t.Service] {
		f.Value.Intentions = append(f.Value.Intentions, intention(i))
	}
	if q.SourcePeer == "" {
		f.Value.Default, _, err = r.client.Connect().IntentionCheck(
			&api.IntentionCheck{Source: q.Source, Destination: t.Service, SourceType: api.IntentionSourceConsul}, o)
		if err != nil {
			f.Missing = err.Error()
			return f
		}
	}
	var entry struct{ JWT *struct{} }
	f.Missing, _ = r.entry(api.ServiceIntentions, t.Service, right, &entry)
	f.Value.JWT = entry.JWT != nil
	if meta.ResultsFilteredByACLs || (len(matched[t.Service]) == 0 && r.blind(meta)) {
		f.Missing = "the token may not read all of them: it needs " + right
	}
	return f
}

func intention(i *api.Intention) reach.Intention {
	made := reach.Intention{
		SourceName: i.SourceName, SourcePeer: i.SourcePeer, DestinationName: i.DestinationName,
		Action: string(i.Action), Precedence: i.Precedence,
	}
	for _, p := range i.Permissions {
		permission := reach.Permission{Action: string(p.Action)}
		if p.JWT != nil {
			permission.JWT = new(struct{})
		}
		if h := p.HTTP; h != nil {
			permission.HTTP = &reach.PermissionMatch{
				PathExact: h.PathExact, PathPrefix: h.PathPrefix, PathRegex: h.PathRegex, Methods: h.Methods,
			}
			for _, m := range h.Header {
				permission.HTTP.Header = append(permission.HTTP.Header, reach.Match(m))
			}
		}
		made.Permissions = append(made.Permissions, permission)
	}
	return made
}

// entry reads a configuration entry.
func (r reachReader) entry(kind, name, right string, out any) (missing string, found bool) {
	missing, found, _ = r.get("/v1/config/"+kind+"/"+url.PathEscape(name), right, r.query(), out)
	return missing, found
}

func (r reachReader) peering(name string) (f reach.Fact[*reach.Peering]) {
	var found bool
	var p reach.Peering
	f.Missing, found, _ = r.get("/v1/peering/"+url.PathEscape(name), `peering = "read"`, r.query(), &p)
	if found {
		f.Value = &p
	}
	return f
}

// roots reads the certificate authority. Every token may.
func (r reachReader) roots() (f reach.Fact[reach.Roots]) {
	list, _, err := r.client.Agent().ConnectCARoots(r.query())
	if err != nil {
		f.Missing = err.Error()
		return f
	}
	f.Value.TrustDomain = list.TrustDomain
	for _, root := range list.Roots {
		if root.ID != list.ActiveRootID {
			continue
		}
		f.Value.Active = true
		if f.Value.NotAfter, err = endOf(root.RootCertPEM); err != nil {
			f.Missing = err.Error()
		}
	}
	return f
}

// endOf returns when the first certificate of a PEM text expires.
func endOf(text string) (time.Time, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return time.Time{}, errors.New("the root certificate is not PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}, fmt.Errorf("the root certificate: %w", err)
	}
	return cert.NotAfter, nil
}

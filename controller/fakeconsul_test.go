package controller

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"
)

// fakeConsul answers what the Cleaner asks, in the process: the model runs
// thousands of schedules in virtual time. consul_test.go holds the same requests
// against a real server.
type fakeConsul struct {
	mu       sync.Mutex
	index    uint64
	offset   time.Duration // of its clock
	tokens   map[string]tokenEntry
	services map[string]fakeService // by node and ID
	nodes    map[string]string      // serf status
	rules    []api.ACLBindingRule
	fail     func(*http.Request) bool
	deleted  func(kind, id string) // is called before each deletion
	writes   int
}

type fakeService struct {
	serviceEntry
	name string
}

func newFakeConsul() *fakeConsul {
	return &fakeConsul{index: 1, tokens: map[string]tokenEntry{}, services: map[string]fakeService{},
		nodes: map[string]string{}}
}

// now returns Consul's clock.
func (f *fakeConsul) now() time.Time { return time.Now().Add(f.offset) }

// login makes a token.
func (f *fakeConsul) login(method, description string) string {
	f.index++
	accessor := fmt.Sprintf("token-%d", f.index)
	f.tokens[accessor] = tokenEntry{AccessorID: accessor, Description: description, AuthMethod: method,
		CreateTime: f.now()}
	return accessor
}

// register makes a service on a node.
func (f *fakeConsul) register(node, name, id string, meta map[string]string) {
	f.index++
	f.services[node+" "+id] = fakeService{serviceEntry{Node: node, ServiceID: id, ServiceMeta: meta}, name}
	if f.nodes[node] == "" {
		f.nodes[node] = "passing"
	}
}

// RoundTrip implements http.RoundTripper.
func (f *fakeConsul) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil && f.fail(r) {
		return f.answer(r, http.StatusInternalServerError, "for a test"), nil
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	path := strings.TrimPrefix(r.URL.Path, "/v1/")
	switch {
	case r.Method == http.MethodGet:
		if strings.HasPrefix(path, "acl/token/") {
			return f.answer(r, http.StatusForbidden, "token does not exist: ACL not found"), nil
		}
		return f.answer(r, http.StatusOK, f.read(path, r)), nil
	case r.Method == http.MethodDelete:
		f.writes++
		id := strings.TrimPrefix(path, "acl/token/")
		if _, ok := f.tokens[id]; !ok {
			return f.answer(r, http.StatusNotFound, "Cannot find token to delete"), nil
		}
		f.remove("token", id, func() { delete(f.tokens, id) })
		return f.answer(r, http.StatusOK, true), nil
	case path == "catalog/deregister":
		f.writes++
		var in struct{ Node, ServiceID string }
		json.NewDecoder(r.Body).Decode(&in)
		f.remove("service", in.Node+" "+in.ServiceID, func() { delete(f.services, in.Node+" "+in.ServiceID) })
		return f.answer(r, http.StatusOK, true), nil
	case path == "txn":
		f.writes++
		var ops api.TxnOps
		json.NewDecoder(r.Body).Decode(&ops)
		return f.txn(r, ops[0].Check.Check, ops[1].Node.Node), nil
	}
	return nil, errors.New("not faked: " + r.Method + " " + path)
}

func (f *fakeConsul) remove(kind, id string, do func()) {
	f.deleted(kind, id)
	f.index++
	do()
}

// txn removes a node unless it has changed.
func (f *fakeConsul) txn(r *http.Request, serf api.HealthCheck, node api.Node) *http.Response {
	status := f.nodes[node.Node]
	current := serf.ModifyIndex == serfIndex(status) && node.ModifyIndex == 1
	if status == "" || !current {
		return f.answer(r, http.StatusConflict,
			api.TxnResponse{Errors: api.TxnErrors{{What: "failed, index is stale"}}})
	}
	f.remove("node", node.Node, func() {
		delete(f.nodes, node.Node)
		for key := range f.services {
			if strings.HasPrefix(key, node.Node+" ") {
				f.deleted("service", key)
				delete(f.services, key)
			}
		}
	})
	return f.answer(r, http.StatusOK, api.TxnResponse{})
}

// serfIndex stands for the index of the last change.
func serfIndex(status string) uint64 { return uint64(len(status)) }

// read returns the answer to a GET.
func (f *fakeConsul) read(path string, r *http.Request) any {
	ours := func(s fakeService) bool {
		return r.URL.Query().Get("filter") == "" || s.ServiceMeta["source"] == "consul-ecs"
	}
	switch {
	case path == "acl/tokens":
		list := []tokenEntry{}
		q := r.URL.Query()
		for _, t := range f.tokens {
			method := q.Get("authmethod")
			if all := method == "" && q.Get("policy") == ""; all || method == t.AuthMethod {
				list = append(list, t)
			}
		}
		return list
	case path == "acl/binding-rules":
		return f.rules
	case path == "catalog/services":
		names := map[string][]string{}
		for _, s := range f.services {
			if ours(s) {
				names[s.name] = []string{}
			}
		}
		return names
	}
	parts := strings.SplitN(path, "/", 3) // a node may have a slash
	kind, name := parts[0]+"/"+parts[1], parts[2]
	list := []serviceEntry{}
	for _, s := range f.services {
		named := kind == "catalog/service" && s.name == name && ours(s)
		if onNode := kind == "catalog/node-services" && s.Node == name; named || onNode {
			list = append(list, s.serviceEntry)
		}
	}
	switch {
	case kind == "health/node" && f.nodes[name] != "":
		return []map[string]any{{"Node": name, "CheckID": "serfHealth",
			"Status": f.nodes[name], "ModifyIndex": serfIndex(f.nodes[name])}}
	case kind == "health/node":
		return []any{}
	case kind == "catalog/node-services" && f.nodes[name] == "":
		return nil
	case kind == "catalog/node-services":
		services := []nodeService{}
		for _, s := range list {
			if r.URL.Query().Get("filter") != `ID == ""` {
				services = append(services, nodeService{s.ServiceID, s.ServiceMeta})
			}
		}
		slices.SortFunc(services, func(a, b nodeService) int { return strings.Compare(a.ID, b.ID) })
		return map[string]any{"Node": map[string]any{"Node": name, "ModifyIndex": 1}, "Services": services}
	}
	return list
}

func (f *fakeConsul) answer(r *http.Request, status int, body any) *http.Response {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return &http.Response{
		StatusCode: status, Status: strconv.Itoa(status), Request: r, Body: io.NopCloser(bytes.NewReader(text)),
		Header: http.Header{
			"Date": {f.now().UTC().Format(http.TimeFormat)}, "X-Consul-Index": {strconv.FormatUint(f.index, 10)},
			"X-Consul-Lastcontact": {"0"}, "X-Consul-Knownleader": {"true"},
		},
	}
}

// accessors returns the accessors of all tokens.
func (f *fakeConsul) accessors() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.tokens))
}

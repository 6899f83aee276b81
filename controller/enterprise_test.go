package controller

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// enterprise answers as a server with admin partitions does, and records what it is
// asked. Only the community server runs here.
type enterprise struct {
	*fakeConsul
	seen []string
}

// RoundTrip implements http.RoundTripper.
func (e *enterprise) RoundTrip(r *http.Request) (*http.Response, error) {
	q := r.URL.Query()
	e.mu.Lock()
	e.seen = append(e.seen, r.Method+" "+strings.TrimPrefix(r.URL.Path, "/v1")+" "+q.Get("partition")+"/"+q.Get("ns"))
	e.mu.Unlock()
	if r.URL.Path == "/v1/namespaces" {
		return e.answer(r, http.StatusOK,
			[]map[string]string{{"Name": "default", "Partition": "edge"}, {"Name": "shop", "Partition": "edge"}}), nil
	}
	if ns := q.Get("ns"); r.Method == http.MethodGet && ns == "default" { // all is in the other
		return e.answer(r, http.StatusOK,
			map[bool]any{true: []any{}, false: map[string]any{}}[strings.HasPrefix(r.URL.Path, "/v1/acl/")]), nil
	}
	return e.fakeConsul.RoundTrip(r)
}

// TestEnterpriseNamespaces: tokens and services are read in each namespace of the
// partition and deleted where they are; nodes are the partition's.
func TestEnterpriseNamespaces(t *testing.T) {
	t.Parallel()
	ecs := &fakeECS{}
	ecs.stop(task1)
	consul := &enterprise{fakeConsul: populated(t, []string{task1})}
	consul.login("kubernetes", loginText(task1, clusterARN)) // in the same list
	c := inMemory(t, consul, ecs)
	c.Partition = "edge"
	r, err := once(t, c)
	if err != nil || len(r.Deleted) != 5 {
		t.Fatalf("report %+v, %v", r, err)
	}
	if r.Deleted[0].Tenancy != (Tenancy{Partition: "edge", Namespace: "shop"}) {
		t.Errorf("deleted %+v", r.Deleted[0])
	}
	slices.Sort(consul.seen)
	var tokens []string
	for _, i := range r.Deleted {
		if i.Kind == KindToken {
			tokens = append(tokens, i.Accessor)
		}
	}
	slices.Sort(tokens)
	want := []string{
		"DELETE /acl/token/" + tokens[0] + " edge/shop", "DELETE /acl/token/" + tokens[1] + " edge/shop",
		"GET /acl/binding-rules edge/default", "GET /acl/binding-rules edge/default",
		// of two methods, for each namespace
		"GET /acl/binding-rules edge/default", "GET /acl/binding-rules edge/default",
		"GET /acl/tokens edge/default", "GET /acl/tokens edge/default",
		"GET /acl/tokens edge/shop", "GET /acl/tokens edge/shop",
		"GET /catalog/node-services/node-" + task1 + " edge/*",
		"GET /catalog/service/web edge/shop", "GET /catalog/service/web-sidecar-proxy edge/shop",
		"GET /catalog/services edge/default", "GET /catalog/services edge/shop",
		"GET /health/node/node-" + task1 + " edge/*", "GET /namespaces edge/",
		"PUT /catalog/deregister edge/shop", "PUT /catalog/deregister edge/shop", "PUT /txn edge/",
	}
	if d := cmp.Diff(want, consul.seen); d != "" {
		t.Errorf("requests (-want +got):\n%s", d)
	}
}

// TestEnterpriseClusterNode: services on the cluster's node are read in each namespace,
// and the node is not read again when they have gone.
func TestEnterpriseClusterNode(t *testing.T) {
	t.Parallel()
	ecs := &fakeECS{}
	ecs.stop(task1)
	consul := &enterprise{fakeConsul: populated(t, []string{task1})}
	consul.register(clusterARN, "api", "api-"+task1,
		map[string]string{"source": "consul-ecs", "task-id": task1, "task-arn": shop(t).TaskARN(task1)})
	c := inMemory(t, consul, ecs)
	c.Partition, c.Leftovers.ClusterNode = "edge", true
	r, err := once(t, c)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Deleted) != 3 {
		t.Fatalf("deleted %+v, want 3", r.Deleted)
	}
	if diff := cmp.Diff(Tenancy{Partition: "edge", Namespace: "shop"}, r.Deleted[0].Tenancy); diff != "" {
		t.Fatalf("tenancy (-want +got):\n%s", diff)
	}
	want := []string{
		"GET /catalog/node-services/" + clusterARN + " edge/default",
		"GET /catalog/node-services/" + clusterARN + " edge/default",
		"GET /catalog/node-services/" + clusterARN + " edge/shop",
		"GET /catalog/node-services/" + clusterARN + " edge/shop",
		"GET /namespaces edge/", "PUT /catalog/deregister edge/shop",
	}
	got := slices.DeleteFunc(consul.seen, func(s string) bool { return strings.Contains(s, " /acl/") })
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("requests (-want +got):\n%s", d)
	}
}

package consulutil

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// addNode puts a node with a service and its check into the catalog.
func addNode(t *testing.T, admin *api.Client, name, id string) {
	t.Helper()
	_, err := admin.Catalog().Register(&api.CatalogRegistration{
		Node: name, ID: id, Address: "192.0.2.1",
		Service: &api.AgentService{ID: name, Service: name},
		Check:   &api.AgentCheck{Node: name, CheckID: name, Name: name, Status: api.HealthPassing, ServiceID: name},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
}

// onNode returns the ID of the node that has a name, and how many checks it has.
func onNode(t *testing.T, admin *api.Client, name string) (id string, checks int) {
	t.Helper()
	node, _, err := admin.Catalog().Node(name, nil)
	list, _, checkErr := admin.Health().Checks(name, nil)
	if err != nil || checkErr != nil {
		t.Fatal(err, checkErr)
	}
	if node != nil {
		id = node.Node.ID
	}
	return id, len(list)
}

func TestDeregisterNodeRemovesTheNodeOfItsID(t *testing.T) {
	t.Parallel()
	admin := client(t, secured.Require(t), secured.Token)
	id, other := uuid.New().String(), uuid.New().String()
	addNode(t, admin, "node-to-go", id)
	addNode(t, admin, "node-to-stay", other)
	anonymous := client(t, secured, "")
	secret := testkit.Grant(t, admin, `node_prefix "node-to-" { policy = "write" }`)
	for range 2 { // the second finds none
		if err := DeregisterNode(t.Context(), anonymous, id, "", secret); err != nil {
			t.Error(err)
		}
	}
	if id, checks := onNode(t, admin, "node-to-go"); id != "" || checks != 0 {
		t.Errorf("node-to-go has ID %q and %d checks, want neither", id, checks)
	}
	if id, checks := onNode(t, admin, "node-to-stay"); id != other || checks != 1 {
		t.Errorf("node-to-stay has ID %q and %d checks, want %q and 1", id, checks, other)
	}
	nowhere := newClient(t, Options{Address: "127.0.0.1:1"})
	if err := DeregisterNode(t.Context(), nowhere, id, "", secret); !Unreachable(err) {
		t.Errorf("without a server: %v", err)
	}
}

// TestDeregisterNodeReportsMissingRights also where Consul hides the node instead of
// refusing the request: hidden is not absent.
func TestDeregisterNodeReportsMissingRights(t *testing.T) {
	t.Parallel()
	admin := client(t, secured.Require(t), secured.Token)
	id := uuid.New().String()
	addNode(t, admin, "node-denied", id)
	for name, rules := range map[string]string{
		"read only": `node_prefix "node-denied" { policy = "read" }`,
		"hidden":    `node_prefix "another" { policy = "write" }`,
	} {
		err := DeregisterNode(t.Context(), client(t, secured, ""), id, "", testkit.Grant(t, admin, rules))
		if Classify(err) != retry.Permanent {
			t.Errorf("%s: %v, want a permanent error", name, err)
		}
	}
	if got, _ := onNode(t, admin, "node-denied"); got != id {
		t.Errorf("the node has ID %q, want %q", got, id)
	}
}

// TestDeregisterNodeSparesAnotherNodeOfItsName: the address of a task that has ended,
// and with it the name of its node, may be another task's by now.
func TestDeregisterNodeSparesAnotherNodeOfItsName(t *testing.T) {
	t.Parallel()
	admin := client(t, secured.Require(t), secured.Token)
	id, next := uuid.New().String(), uuid.New().String()
	addNode(t, admin, "node-reused", id)
	var once sync.Once
	c := newClient(t, Options{Address: secured.HTTPAddr, Wrap: func(rt http.RoundTripper) http.RoundTripper {
		return testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet {
				once.Do(func() {
					if _, err := admin.Catalog().Deregister(&api.CatalogDeregistration{Node: "node-reused"},
						nil); err != nil {
						t.Error(err)
					}
					addNode(t, admin, "node-reused", next)
				})
			}
			return rt.RoundTrip(r)
		})
	}})
	if err := DeregisterNode(t.Context(), c, id, "", secured.Token); err == nil || Classify(err) != retry.NotYet {
		t.Errorf("%v, want an error to retry", err)
	}
	if err := DeregisterNode(t.Context(), c, id, "", secured.Token); err != nil {
		t.Errorf("second try: %v", err)
	}
	if id, checks := onNode(t, admin, "node-reused"); id != next || checks != 1 {
		t.Errorf("the name has ID %q and %d checks, want %q and 1", id, checks, next)
	}
}

// TestDeregisterNodeReadsNoOtherNode: each task that stops asks once, beside
// thousands of nodes.
func TestDeregisterNodeReadsNoOtherNode(t *testing.T) {
	t.Parallel()
	admin := client(t, secured.Require(t), secured.Token)
	addNode(t, admin, "node-unrelated", uuid.New().String())
	id := uuid.New().String()
	var asked []string
	c := newClient(t, Options{Address: secured.HTTPAddr, Wrap: func(rt http.RoundTripper) http.RoundTripper {
		return testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
			asked = append(asked, r.Method+" "+r.URL.Path)
			return rt.RoundTrip(r)
		})
	}})
	if err := DeregisterNode(t.Context(), c, id, "", secured.Token); err != nil {
		t.Error(err)
	}
	if want := []string{"GET /v1/catalog/node-services/" + id}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

func TestAwaitNodeRemoved(t *testing.T) {
	t.Parallel()
	admin := client(t, secured.Require(t), secured.Token)
	reads := make(chan struct{}, 1000)
	anonymous := newClient(t, Options{Address: secured.HTTPAddr, Wrap: func(next http.RoundTripper) http.RoundTripper {
		return testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
			defer func() { reads <- struct{}{} }()
			return next.RoundTrip(r)
		})
	}})
	id := uuid.New().String()
	addNode(t, admin, "node-awaited", id)
	read := testkit.Grant(t, admin, `node_prefix "node-awaited" { policy = "read" }`)
	result := make(chan error, 1)
	go func() { result <- AwaitNodeRemoved(t.Context(), anonymous, id, "", read) }()

	<-reads // the node is known
	// A change of the node is no removal.
	for _, service := range []string{"one", "two"} {
		_, err := admin.Catalog().Register(&api.CatalogRegistration{
			Node: "node-awaited", ID: id, Address: "192.0.2.1",
			Service: &api.AgentService{ID: service, Service: service}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 + len(reads) { // one may have been under way
			select {
			case <-reads:
			case err := <-result:
				t.Fatalf("returned %v while the node is there", err)
			}
		}
	}
	if _, err := admin.Catalog().Deregister(&api.CatalogDeregistration{Node: "node-awaited"}, nil); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-result:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(testkit.Patience):
		t.Error("the removal was not noticed")
	}
}

// TestAwaitNodeRemovedNeedsTheNode: what is not there, or hidden, at the call, proves
// no removal.
func TestAwaitNodeRemovedNeedsTheNode(t *testing.T) {
	t.Parallel()
	admin := client(t, secured.Require(t), secured.Token)
	id := uuid.New().String()
	addNode(t, admin, "node-hidden", id)
	for name, tt := range map[string]struct{ id, secret string }{
		"absent": {uuid.New().String(), secured.Token},
		"hidden": {id, testkit.Grant(t, admin, `node_prefix "another" { policy = "read" }`)},
	} {
		if err := AwaitNodeRemoved(t.Context(), client(t, secured, ""), tt.id, "", tt.secret); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := AwaitNodeRemoved(t.Context(), newClient(t, Options{Address: "127.0.0.1:1"}), id, "",
		""); !Unreachable(err) {
		t.Errorf("without a server: %v", err)
	}
}

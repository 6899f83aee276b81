package consulutil

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestReadChecks(t *testing.T) {
	t.Parallel()
	admin := client(t, secured.Require(t), secured.Token)
	const node = "arn:aws:ecs:us-west-2:123456789012:cluster/checks"
	_, err := admin.Catalog().Register(&api.CatalogRegistration{
		Node: node, Address: "192.0.2.1", Service: &api.AgentService{ID: "checked-1", Service: "checked"},
		Checks: api.HealthChecks{
			{Node: node, CheckID: "a", Name: "a", Status: "passing", Output: "fine", ServiceID: "checked-1"},
			{Node: node, CheckID: "b", Name: "b", Status: "critical", ServiceID: "checked-1"},
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	reader := testkit.Grant(t, admin, `node_prefix "" { policy = "read" } service_prefix "" { policy = "read" }`)
	for name, tc := range map[string]struct {
		node  string
		ids   []string
		token string
		want  []string
	}{
		"both":         {node, []string{"a", "b"}, reader, []string{"a passing fine", "b critical "}},
		"one is gone":  {node, []string{"x", "b", "y"}, reader, []string{"b critical "}},
		"all are gone": {node, []string{"x", "y"}, reader, nil},
		"none":         {node, nil, reader, nil},
		"no node":      {"arn:of-another", []string{"a"}, reader, nil},
		"hidden":       {node, []string{"a"}, testkit.Grant(t, admin, `key "x" { policy = "read" }`), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := ReadChecks(admin, tc.node, tc.ids, &api.QueryOptions{Token: tc.token, AllowStale: true})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range found {
				got = append(got, c.CheckID+" "+c.Status+" "+c.Output)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	_, err = ReadChecks(admin, node, []string{"a"}, &api.QueryOptions{Token: strangeToken})
	if !UnknownToken(err) {
		t.Fatalf("unknown token: %v", err)
	}
	if class := ClassifyNewToken(err); class != retry.NotYet {
		t.Errorf("unknown token: class %v of: %v", class, err)
	}
	if want := "read checks of node " + node + ": "; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("unknown token: %v, want the prefix %q", err, want)
	}
}

// TestReadChecksFaults: no answer that is no list of missing checks counts as one.
func TestReadChecksFaults(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status int
		body   string
		class  retry.Class
		text   string
	}{
		"server's fault": {500, "No cluster leader", retry.NotYet, "No cluster leader"},
		"another failure": {
			409, `{"Errors":[{"OpIndex":0,"What":"check lookup failed"}]}`, retry.NotYet, "check lookup failed",
		},
		"no permission": {409, `{"Errors":[{"OpIndex":0,"What":"Permission denied"}]}`,
			retry.Permanent, "Permission denied"},
		"no cause": {409, `{"Errors":[]}`, retry.NotYet, "failed without a cause"},
		"no JSON":  {200, "<html>", retry.NotYet, "is not Consul's"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.status)
				fmt.Fprint(w, tc.body)
			}))
			defer server.Close()
			found, err := ReadChecks(newClient(t, Options{Address: server.URL}), "n",
				[]string{"a", "b"}, &api.QueryOptions{})
			if found != nil {
				t.Errorf("found %v", found)
			}
			testkit.ErrorContains(t, err, tc.text)
			testkit.Equal(t, "class", Classify(err), tc.class)
		})
	}
}

// TestUnknownCatalogServiceIsNotFound: with the real server's answers.
func TestUnknownCatalogServiceIsNotFound(t *testing.T) {
	t.Parallel()
	admin := client(t, secured.Require(t), secured.Token)
	const node = "node-without-services"
	if _, err := admin.Catalog().Register(&api.CatalogRegistration{Node: node, Address: "192.0.2.1"}, nil); err != nil {
		t.Fatal(err)
	}
	writer := testkit.Grant(t, admin, `service_prefix "" { policy = "write" }`)
	options := &api.WriteOptions{Token: writer}
	check := &api.HealthCheck{Node: node, CheckID: "c", Name: "c", ServiceID: "lost"}
	_, set := admin.Catalog().Register(
		&api.CatalogRegistration{Node: node, SkipNodeUpdate: true, Checks: api.HealthChecks{check}}, options)
	_, service := admin.Catalog().Deregister(&api.CatalogDeregistration{Node: node, ServiceID: "lost"}, options)
	_, single := admin.Catalog().Deregister(&api.CatalogDeregistration{Node: node, CheckID: "c"}, options)
	for what, err := range map[string]error{"set check": set, "deregister service": service,
		"deregister check": single} {
		if Classify(err) != retry.Gone || Status(err) != http.StatusInternalServerError {
			t.Errorf("%s: class %v of: %v", what, Classify(err), err)
		}
	}
	if err := WithClass(errors.New("x"), retry.NotYet); Classify(fmt.Errorf("y: %w", err)) != retry.NotYet ||
		err.Error() != "x" {
		t.Errorf("WithClass: %v", err)
	}
}

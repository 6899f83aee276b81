package meshinit_test

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/meshinit"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

// Configurations of tasks without an agent: with a login, where the role's tag says
// "web", and without.
const (
	serversDoc = `{"bootstrapDir":"DIR","consulServers":SERVERS,"transparentProxy":{"enabled":false},
	"service":{"name":"web","port":9090},"proxy":{}}`
	serversLoginDoc = `{"bootstrapDir":"DIR","consulServers":SERVERS,"transparentProxy":{"enabled":false},
	"consulLogin":{"enabled":true,"method":"` + trusting + `"},"healthSyncContainers":["app"],"service":{"name":"web","port":9090},"proxy":{}}`
)

// direct returns a document with proxy.mode direct.
func direct(doc string) string {
	return strings.Replace(doc, `"proxy":{}`, `"proxy":{"mode":"direct"}`, 1)
}

// serversAt returns the settings of consulServers with which HTTP goes to a URL.
func serversAt(at string) string {
	u, err := url.Parse(at)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf(
		`{"hosts":%q,"skipServerWatch":true,"http":{"port":%s,"https":false},"grpc":{"port":8502,"tls":false}}`,
		u.Hostname(), u.Port())
}

// leaveAgent makes the fixture one of a task without an agent, as the command does.
func (s *fixture) leaveAgent() {
	s.t.Helper()
	cfg := s.options.Config
	servers, err := consulutil.NewServers(consulutil.ServersOptions{Config: *cfg.ConsulServers, Log: s.deps.Log})
	if err != nil {
		s.t.Fatal(err)
	}
	client := func() (*api.Client, error) {
		return consulutil.NewClient(consulutil.Options{Servers: servers})
	}
	s.options.Endpoint = meshinit.ServersEndpoint()
	s.options.Proxy = meshinit.ServersProxy{Config: cfg, GRPC: servers.GRPCTLS()}
	s.servers = client
	s.deps.Consul = func() (meshinit.Consul, error) {
		c, err := client()
		if err != nil {
			return meshinit.Consul{}, err
		}
		return meshinit.Consul{Registrar: registrar.New(cfg, c)}, nil
	}
}

// node returns the node of all tasks of the fixture's cluster.
func (s *fixture) node() string { return nodeOf(s.cluster) }

func nodeOf(cluster string) string { return "arn:aws:ecs:us-west-2:123456789012:cluster/" + cluster }

// createNode does what the controller does.
func createNode(admin *api.Client, cluster string) error {
	_, err := admin.Catalog().Register(&api.CatalogRegistration{
		Node: nodeOf(cluster), Address: "127.0.0.1", NodeMeta: map[string]string{"synthetic-node": "true"},
	}, nil)
	return err
}

// catalogIDs returns the services of the fixture's node.
func (s *fixture) catalogIDs() []string {
	s.t.Helper()
	list, _, err := s.admin().Catalog().NodeServiceList(s.node(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	var ids []string
	for _, service := range list.Services {
		ids = append(ids, service.ID)
	}
	return ids
}

// instance returns a registration as the catalog has it, with its checks.
func (s *fixture) instance(name, id string) *api.ServiceEntry {
	s.t.Helper()
	found, _, err := s.admin().Health().Service(name, "", false,
		&api.QueryOptions{Filter: fmt.Sprintf("Service.ID == %q", id)})
	if err != nil || len(found) != 1 {
		s.t.Fatalf("instances %q of %s: %v, %v\n%s", id, name, found, err, s.log)
	}
	return found[0]
}

// wantFiles checks what is in bootstrapDir beside the program and the status.
func (s *fixture) wantFiles(names ...string) {
	s.t.Helper()
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		if e.Name() != workload.FileBinary && e.Name() != workload.FileStatus {
			got = append(got, e.Name())
		}
	}
	if !slices.Equal(got, names) {
		s.t.Errorf("files = %v, want %v", got, names)
	}
}

package workload

import (
	"maps"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/config"
)

// Names of the containers that belong to consul-ecs, as hashicorp/consul-ecs and its
// Terraform modules have them; install, dataplane and control-plane are
// those of later generations.
const (
	ContainerMeshInit     = "consul-ecs-mesh-init"
	ContainerConsulClient = "consul-client"
	ContainerSidecarProxy = "sidecar-proxy"
	ContainerHealthSync   = "consul-ecs-health-sync"
	ContainerInstall      = "consul-ecs-install"
	ContainerDataplane    = "consul-dataplane"
	ContainerControlPlane = "consul-ecs-control-plane"
)

// Names of the files in the bootstrap directory.
const (
	// FileServiceToken holds the secret of the task's own login.
	FileServiceToken = "service-token"
	// FileClientToken holds the secret of the Consul client's login.
	FileClientToken = "client-token"
	// FileClientTokenOwner exists while client-entrypoint runs the agent: it
	// outlives the applications, and only it logs FileClientToken out.
	FileClientTokenOwner = "client-token.owner"
	// FileBootstrap is what Envoy starts from.
	FileBootstrap = "envoy-bootstrap.json"
	// FileDataplane is what consul-dataplane starts from, FileGRPCCACert verifies the
	// servers' gRPC for it.
	FileDataplane  = "consul-dataplane.json"
	FileGRPCCACert = "consul-grpc-ca-cert.pem"
	// FileRelay is what the relay between Envoy and the servers starts from.
	FileRelay = "xds-relay.json"
	// FileHosts has the lines for the hosts files of the task's containers.
	FileHosts = "upstream-hosts"
	// FileStatus is how far mesh-init has come, for the containers that wait for it.
	FileStatus = "mesh-init.json"
	// FileBinary is the copy of this program for the other containers.
	FileBinary = "consul-ecs"
	// FileCACert verifies the Consul servers' RPC, FileHTTPSCACert their HTTPS.
	FileCACert      = "consul-ca-cert.pem"
	FileHTTPSCACert = "consul-https-ca-cert.pem"
	// DirClient is the Consul client's own directory.
	DirClient = "consul-client"
)

// AgentGRPCPort is where the task's Consul client serves xDS or, without an agent,
// the relay to the servers.
const AgentGRPCPort = 8502

// RelaySocket returns the abstract Unix socket where the relay to the task's Consul client serves
// xDS. Such a socket needs no directory and no free port, and is the task's network's.
func RelaySocket(taskID string) string { return "@consul-ecs-xds-" + taskID }

// syncCheckName is the Consul name of every check that health-sync feeds through an
// agent.
const syncCheckName = "consul ecs synced"

// Consul names and type of the checks that health-sync feeds without an agent: one for
// each container, and one for each service, which aggregates them.
const (
	catalogCheckName   = "Consul ECS health check synced"
	aggregateCheckName = "Consul dataplane readiness"
	CatalogCheckType   = "consul-ecs-health-check"
	// SessionCheckName is that of the check of health-sync itself.
	SessionCheckName = "Consul ECS health-sync alive"
)

// ServiceID returns the ID of a service or gateway: "<name>-<task ID>".
func ServiceID(name, taskID string) string { return name + "-" + taskID }

// ProxyName returns the service name of the sidecar proxy of the service name.
func ProxyName(name string) string { return name + proxySuffix }

// proxySuffix ends the name and the ID of every sidecar proxy. No other ID ends so:
// those end with a task's ID.
const proxySuffix = "-sidecar-proxy"

// ProxyID returns the ID of the sidecar proxy of a service ID.
func ProxyID(serviceID string) string { return serviceID + proxySuffix }

// IsProxyID reports whether the ID is a sidecar proxy's.
func IsProxyID(id string) bool { return strings.HasSuffix(id, proxySuffix) }

// CheckID returns the ID of the check that mirrors a container's ECS health through an agent.
func CheckID(serviceID, container string) string {
	return serviceID + "-" + container + "-consul-ecs"
}

// CatalogCheckID returns the ID of the check that mirrors a container's ECS health without an agent. The
// aggregate of a service is that of ContainerDataplane.
func CatalogCheckID(serviceID, container string) string { return serviceID + "-" + container }

// SessionCheckID returns the ID of a service's check that depends on the session of the task's health-sync.
// No container's name has a colon, so that it is no container's check.
func SessionCheckID(serviceID string) string { return serviceID + ":session" }

// LoginMeta returns what a login records in its token: the user's keys, and the task's ID, the cluster's ARN
// and whether the token is replaced before it expires, which the user's cannot replace.
func LoginMeta(cfg *config.Config, t Task) map[string]string {
	meta := map[string]string{}
	maps.Copy(meta, cfg.ConsulLogin.Meta)
	meta[config.LoginMetaTaskID] = t.ID()
	meta[config.LoginMetaCluster] = t.ClusterARN()
	meta[config.LoginMetaRenewed] = strconv.FormatBool(cfg.Direct())
	return meta
}

package controller

import (
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/controller/setup"
)

// lockRule is what a refusal of the lock names: all that the token needs, since the lock is
// the first request, and the token of a controller of hashicorp/consul-ecs lacks most of it.
const lockRule = `acl = "write" ` + setup.KeyRule + " " + consulutil.SessionRule +
	` agent_prefix "" { policy = "read" } node_prefix "" { policy = "write" } service_prefix "" { policy = "write" }`

// LockOptions are what the lock of a controller needs.
type LockOptions struct {
	// Consul makes the lock's own client, whose requests are short.
	Consul consulutil.Options
	// Cluster is the ARN of the cluster. Partition is that of the controller's
	// objects, empty without Consul Enterprise; the key is in the default partition,
	// as the controller's may not exist yet. Name is that of setup.State: controllers of
	// different names do not exclude each other.
	Cluster, Partition, Name string
	// Holder is the value of the key: it names the leader for operators.
	Holder string
	Log    hclog.Logger
}

// NewLock makes no request.
func NewLock(o LockOptions) (*consulutil.Lock, error) {
	if o.Partition != "" {
		o.Consul.Partition, o.Consul.Namespace = defaultName, defaultName
	}
	return consulutil.NewLock(consulutil.LockOptions{
		Consul: o.Consul, Key: LockKey(o.Cluster, o.Partition, o.Name), KeyRule: lockRule,
		Session: "consul-ecs controller", Holder: o.Holder, Log: o.Log,
	})
}

// LockKey is the KV key of a cluster's lock, see LockOptions.
func LockKey(cluster, partition, name string) string {
	key := setup.KeyPrefix + "controller/" + cluster
	for _, part := range []string{partition, name} {
		if part != "" {
			key += "/" + part
		}
	}
	return key + "/leader"
}

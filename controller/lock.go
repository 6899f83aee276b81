package controller

import (
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/controller/setup"
)

// lockRule is what a refusal of the lock names: all that the token needs, since the lock is
// the first request, and the token of a controller of hashicorp/consul-ecs lacks most of it.
const lockRule = `acl = "write" ` + setup.KeyRule + " " + consulutil.SessionRule +
	` node_prefix "" { policy = "write" } service_prefix "" { policy = "write" }`

// NewLock returns the leader's lock of the cluster with that ARN. partition is that of the
// controller's objects, empty without Consul Enterprise; the key is in the default
// partition, as the controller's may not exist yet. name is that of setup.State: controllers
// of different names do not exclude each other. Key, KeyRule and Session of o are set here.
// NewLock makes no request.
func NewLock(o consulutil.LockOptions, cluster, partition, name string) (*consulutil.Lock, error) {
	if partition != "" {
		o.Consul.Partition, o.Consul.Namespace = defaultName, defaultName
	}
	o.Key, o.KeyRule, o.Session = LockKey(cluster, partition, name), lockRule, "consul-ecs controller"
	return consulutil.NewLock(o)
}

// LockKey returns the KV key of a cluster's lock, see NewLock.
func LockKey(cluster, partition, name string) string {
	key := setup.KeyPrefix + "controller/" + cluster
	for _, part := range []string{partition, name} {
		if part != "" {
			key += "/" + part
		}
	}
	return key + "/leader"
}

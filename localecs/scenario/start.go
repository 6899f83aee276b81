package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// setUpLimit bounds the start of the server and what is set up in it.
const setUpLimit = 60 * time.Second

// Start starts the server in a cluster's VPC and sets up what the scenario wants
// in it; the client has the management token, which is token. The secrets that this
// makes are the cluster's from then on.
func StartServer(ctx context.Context, vpc *cluster.Cluster, c *file.Consul, token string) (*cluster.Running, *api.Client, error) {
	running, err := vpc.StartService(ctx, cluster.Service{
		Name: "consul-server", Image: c.Image, Args: args(c), Address: c.Address, Ports: Ports(), Dirs: []string{"/consul/data"},
		Files: map[string]string{configFile: config(token)},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("start consul server: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, setUpLimit)
	defer cancel()
	client, err := consulutil.NewClient(consulutil.Options{
		Address: Address(c), Token: token,
		Timeout: time.Minute, DialContext: vpc.Dial,
	})
	if err != nil {
		return nil, nil, err
	}
	if err := AwaitLeader(ctx, client, running); err != nil {
		return nil, nil, err
	}
	secrets, err := SetUp(ctx, c, client, vpc.AWSEndpoint())
	if err != nil {
		return nil, nil, fmt.Errorf("set up consul: %w", err)
	}
	for name, value := range secrets {
		vpc.PutSecret(name, value)
	}
	return running, client, nil
}

// Address is the server's HTTP API, in the cluster's network.
func Address(c *file.Consul) string { return "http://" + c.Address + ":8500" }

// AwaitLeader waits until the server takes writes, also after it was down.
func AwaitLeader(ctx context.Context, client *api.Client, running *cluster.Running) error {
	ctx, cancel := context.WithTimeout(ctx, setUpLimit)
	defer cancel()
	if err := WaitLeader(ctx, client, running.Done()); err != nil {
		return fmt.Errorf("wait for consul server: %w: %s (log: %s)", err, cluster.LastLine(running.LogFile), running.LogFile)
	}
	return nil
}

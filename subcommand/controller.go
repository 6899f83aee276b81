package subcommand

import (
	"context"
	"errors"
	"flag"
	"sync"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/controller"
	"github.com/meshtask/consul-ecs/controller/setup"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
)

func controllerCommand() cli.Command {
	var f controllerFlags
	return cli.Command{
		Synopsis: "Set up Consul for a cluster without agents, and clean up after dead tasks",
		Usage:    "controller [flags]",
		Help: `
Does what acl-controller does, for tasks without a Consul client agent. It registers the
cluster's node, on which all tasks have their services, and creates, and corrects when
they change, the auth method by which the tasks log in, its binding rules, and the
policies and roles of gateways. Then it looks for tokens and services of tasks that have
ended, and removes them: only with proof, which it logs. A task that ECS shows, or may
show, keeps everything. Where Consul has no ACLs it registers the node and removes
services.

The role path, partitions and log level are those of the configuration. The token of
CONSUL_HTTP_TOKEN, the task role, retries, TERM and exit codes are those of
acl-controller, see acl-controller --help; both may run for a cluster that has tasks of
both kinds.

Environment:
  CONSUL_ECS_CONFIG_JSON         the configuration, with consulServers
  CONSUL_ECS_GENERATION          agent or agentless, to refuse a configuration of the
                                 other generation
  CONSUL_HTTP_TOKEN              the token, or a file's in CONSUL_HTTP_TOKEN_FILE
  CONSUL_HTTPS_CACERT_PEM        CA certificates of the servers, as text
  ECS_CONTAINER_METADATA_URI_V4  set by ECS, for the cluster and the node's address
  AWS_REGION and the rest        the AWS SDK's; the region is the cluster's

Example:
  $ CONSUL_HTTP_TOKEN=... CONSUL_ECS_CONFIG_JSON='{"bootstrapDir": "/consul",
      "consulServers": {"hosts": "consul.example.com"}, "controller": {}}' \
      consul-ecs controller -metrics-addr :9102`,
		Flags: func(fs *flag.FlagSet) {
			f.declareOperation(fs)
			f.shared.declareRate(fs, awsutil.DefaultECSRate)
		},
		Run: service(f.runAgentless),
	}
}

func (f *controllerFlags) runAgentless(ctx context.Context, inv *cli.Invocation) error {
	cfg, servers, err := controllerConfig(inv)
	if err != nil {
		return &exit.UsageError{Err: errors.Join(err, f.checkOperation(inv))}
	}
	var running sync.WaitGroup
	defer running.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	running.Go(func() { servers.Run(ctx) })
	f.rolePath = cfg.Controller.IAMRolePath
	f.shared.partitions, f.shared.partition = cfg.Controller.PartitionsEnabled, cfg.Controller.Partition
	f.level, f.json = cfg.LogLevel, cfg.LogJSON
	return f.run(ctx, inv, controllerVariant{
		wanted: setup.Agentless, rolePath: "controller.iamRolePath",
		leftovers: controller.Leftovers{Methods: []string{config.ServiceAuthMethod}, ClusterNode: true},
		consul:    consulutil.Options{Servers: servers, Timeout: consulTimeout},
	})
}

// controllerConfig reads the configuration, and returns the servers that it names. Its
// error is a mistake there.
func controllerConfig(inv *cli.Invocation) (*config.Config, *consulutil.Servers, error) {
	cfg, err := parseConfig(inv, "$.service", "$.consulServers.grpc.tlsServerName")
	if err != nil {
		return nil, nil, err
	}
	if !cfg.Agentless() {
		return nil, nil,
			exit.Usagef("%s has no consulServers: add it, or run acl-controller for tasks with a Consul client agent",
				config.EnvVar)
	}
	servers, err := newServers(*cfg.ConsulServers, inv.Getenv(httpsCAPEMEnv), "", inv.Log)
	return cfg, servers, err
}

package subcommand

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/controller"
	"github.com/meshtask/consul-ecs/controller/setup"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// sharedFlags are those that the controllers and gc have in common: where the
// cluster's leftovers are, and how fast ECS may be asked.
type sharedFlags struct {
	partition  string
	partitions bool
	rate       float64
}

func (f *sharedFlags) declare(fs *flag.FlagSet) {
	f.declarePartition(fs)
	f.declareRate(fs, awsutil.DefaultECSRate)
}

func (f *sharedFlags) declarePartition(fs *flag.FlagSet) {
	fs.BoolVar(&f.partitions, "partitions-enabled", false,
		"the cluster has an admin partition and namespaces (Consul Enterprise)")
	fs.StringVar(&f.partition, "partition", "",
		"admin partition of the cluster (Consul Enterprise; default \"default\")")
}

func (f *sharedFlags) declareRate(fs *flag.FlagSet, rate float64) {
	fs.Float64Var(&f.rate, "aws-rate", rate, "calls of the ECS API a second, at most")
}

// check makes partition the admin partition, which is empty without partitions.
func (f *sharedFlags) check() (err error) {
	f.partition, err = setup.PartitionOption(f.partitions, f.partition)
	return errors.Join(err, usageErrorIf(!(f.rate > 0 && f.rate <= 100),
		"-aws-rate %v: want more than 0, and at most 100", f.rate))
}

// lock returns a lock of the cluster's controllers.
func (f *sharedFlags) lock(at controllerIdentity, name string, o consulutil.LockOptions) (*consulutil.Lock, error) {
	o.Holder = at.holder
	return controller.NewLock(o, at.cluster.ARN, f.partition, name)
}

// controllerIdentity is a controller's cluster and its own name.
type controllerIdentity struct {
	cluster awsutil.Cluster
	// holder is what other controllers read of it: its task's ARN, or its host.
	holder string
	// address is the task's IP address, empty outside of one.
	address string
}

// locate finds the cluster: the flag's, or that of this task.
func locate(ctx context.Context, inv *cli.Invocation, flag string) (controllerIdentity, error) {
	if flag != "" {
		host, _ := os.Hostname() // informational only
		cluster, err := awsutil.ParseCluster(flag)
		return controllerIdentity{cluster: cluster, holder: fmt.Sprintf("process %d of %s", os.Getpid(), host)}, err
	}
	metadata, err := metadataClient(inv)
	if err != nil {
		return controllerIdentity{}, err
	}
	task, err := awsutil.FirstTask(ctx, inv.Log, metadata.Task, retry.StartLimit)
	if err != nil {
		return controllerIdentity{}, err
	}
	cluster, err := awsutil.ParseCluster(task.ClusterARN())
	if err != nil {
		return controllerIdentity{}, exit.Usagef("%w (from the task metadata): give -cluster", err)
	}
	address, _ := task.NodeIP() // the cluster's node can do without
	return controllerIdentity{cluster, task.TaskARN, address}, nil
}

// checkClusters finds mistakes in the ARNs of -cluster, and in the environment of Consul.
func checkClusters(inv *cli.Invocation, arns []string) error {
	var errs []error
	for _, arn := range arns {
		_, err := awsutil.ParseCluster(arn)
		errs = append(errs, usageErrorIf(err != nil, "-cluster: %w", err))
	}
	_, err := consulutil.NewClient(consulOptions(inv))
	return errors.Join(append(errs,
		usageErrorIf(len(arns) == 0 && inv.Getenv(awsutil.MetadataEnvVar) == "",
			"no cluster: give -cluster ARN, or run this in a task of it"),
		usageErrorIf(err != nil, "%w", err))...)
}

// orTasks returns the ARNs of clusters, or an empty one for that of the task.
func orTasks(arns []string) []string {
	if len(arns) == 0 {
		return []string{""}
	}
	return arns
}

// ecsReader reads ECS in the cluster's region, which wins over the environment's.
func ecsReader(ctx context.Context, cluster awsutil.Cluster, rate float64) (*awsutil.ECSReader, error) {
	config, err := awsutil.LoadConfig(ctx, awsutil.LoadOptions{Region: cluster.Region, UserAgent: controllerAgent,
		Version: cli.Version()})
	if err != nil {
		return nil, err
	}
	return awsutil.NewECSReader(config, awsutil.ECSReaderOptions{CallsPerSecond: rate}), nil
}

// agentLeftovers returns what tasks of the agent generation leave.
func agentLeftovers() controller.Leftovers {
	return controller.Leftovers{Methods: []string{config.ClientAuthMethod, config.ServiceAuthMethod}}
}

// consulTimeout is for a list of all tokens: twenty thousand are 15 MB.
const consulTimeout = time.Minute

// consulOptions returns those of commands beside the Consul servers.
func consulOptions(inv *cli.Invocation) consulutil.Options {
	return consulutil.Options{CAPEM: strings.TrimSpace(inv.Getenv("CONSUL_CACERT_PEM")), Timeout: consulTimeout}
}

package subcommand

import (
	"errors"
	"flag"

	"github.com/meshtask/consul-ecs/awsutil/ecsread"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/controller"
	"github.com/meshtask/consul-ecs/controller/setup"
	"github.com/meshtask/consul-ecs/internal/exit"
)

// sharedFlags are those that the controllers and gc have in common: where the
// cluster's leftovers are, and how fast ECS may be asked.
type sharedFlags struct {
	partition  string
	partitions bool
	rate       float64
}

func (f *sharedFlags) declare(fs *flag.FlagSet) {
	fs.BoolVar(&f.partitions, "partitions-enabled", false, "the cluster has an admin partition and namespaces (Consul Enterprise)")
	fs.StringVar(&f.partition, "partition", "", "admin partition of the cluster (Consul Enterprise; default \"default\")")
	f.declareRate(fs)
}

func (f *sharedFlags) declareRate(fs *flag.FlagSet) {
	fs.Float64Var(&f.rate, "aws-rate", ecsread.DefaultRate, "calls of the ECS API a second, at most")
}

func (f *sharedFlags) check() error {
	_, err := setup.PartitionOption(f.partitions, f.partition)
	if !(f.rate > 0 && f.rate <= 100) {
		err = errors.Join(err, exit.Usagef("-aws-rate %v: want more than 0, and at most 100", f.rate))
	}
	return err
}

// adminPartition is the controller's, or empty without partitions.
func (f *sharedFlags) adminPartition() string {
	partition, _ := setup.PartitionOption(f.partitions, f.partition) // checked
	return partition
}

// lock is a lock of the cluster's controllers.
func (f *sharedFlags) lock(at place, o controller.LockOptions) (*consulutil.Lock, error) {
	o.Cluster, o.Partition, o.Holder = at.cluster.ARN, f.adminPartition(), at.holder
	return controller.NewLock(o)
}

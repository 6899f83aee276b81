package subcommand

import (
	"errors"
	"flag"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/controller"
	"github.com/meshtask/consul-ecs/controller/setup"
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
	fs.Float64Var(&f.rate, "aws-rate", awsutil.DefaultECSRate, "calls of the ECS API a second, at most")
}

// check makes partition the admin partition, which is empty without partitions.
func (f *sharedFlags) check() (err error) {
	f.partition, err = setup.PartitionOption(f.partitions, f.partition)
	return errors.Join(err, mistake(!(f.rate > 0 && f.rate <= 100), "-aws-rate %v: want more than 0, and at most 100", f.rate))
}

// lock is a lock of the cluster's controllers.
func (f *sharedFlags) lock(at place, name string, o consulutil.LockOptions) (*consulutil.Lock, error) {
	o.Holder = at.holder
	return controller.NewLock(o, at.cluster.ARN, f.partition, name)
}

package subcommand

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/controller"
	"github.com/meshtask/consul-ecs/controller/setup"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/workload"
)

// controllerAgent names the controller to AWS, as in 0.6.
const controllerAgent = "consul-ecs-controller"

// httpLimit bounds a request for metrics.
const httpLimit = 10 * time.Second

// place is a controller's cluster and its own name.
type place struct {
	cluster awsutil.Cluster
	// holder is what other controllers read of it: its task's ARN, or its host.
	holder string
	// address is the task's IP address, empty outside of one.
	address string
}

// controllerVariant is what the controllers of the two generations differ in.
type controllerVariant struct {
	// name is that of the wanted state.
	name   string
	wanted func(setup.Options) (setup.State, error)
	// leftovers are what tasks leave.
	leftovers controller.Leftovers
	// rolePath is how users call the option.
	rolePath string
	// consul reaches the servers.
	consul consulutil.Options
}

func (f *controllerFlags) run(ctx context.Context, inv *cli.Invocation, v controllerVariant) error {
	if err := f.check(inv, v); err != nil {
		return err
	}
	listener, err := f.listen()
	if err != nil {
		return err
	}
	at, err := locate(ctx, inv, f.cluster)
	if err != nil {
		return err
	}
	inv.Log = inv.Log.With(logkey.ClusterARN, at.cluster.ARN)
	c, err := f.controller(ctx, inv, v, at)
	if err != nil {
		return err
	}
	if listener != nil {
		inv.Log.Info("serving metrics", logkey.Address, listener.Addr().String())
		defer serve(listener, inv.Log, &http.Server{Handler: c.Handler(), ReadHeaderTimeout: httpLimit, WriteTimeout: httpLimit})()
	}
	return c.Run(ctx)
}

// listen takes the port before anything is done; nil without -metrics-addr.
func (f *controllerFlags) listen() (net.Listener, error) {
	if f.metricsAddr == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", f.metricsAddr)
	if err != nil {
		return nil, exit.Usagef("-metrics-addr: %w", err)
	}
	return listener, nil
}

// locate finds the cluster: the flag's, or that of this task.
func locate(ctx context.Context, inv *cli.Invocation, flag string) (place, error) {
	if flag != "" {
		host, _ := os.Hostname() // informational only
		cluster, err := awsutil.ParseCluster(flag)
		return place{cluster: cluster, holder: fmt.Sprintf("process %d of %s", os.Getpid(), host)}, err
	}
	metadata, err := metadataClient(inv)
	if err != nil {
		return place{}, err
	}
	var task workload.Task
	err = retry.Do(ctx, retry.Remote(), inv.Log, "read task metadata", consulutil.Classify, func(ctx context.Context) error {
		task, err = metadata.Task(ctx)
		return err
	})
	if err != nil {
		return place{}, err
	}
	cluster, err := awsutil.ParseCluster(task.ClusterARN())
	if err != nil {
		return place{}, exit.Usagef("%w (from the task metadata): give -cluster", err)
	}
	address, _ := task.NodeIP() // the cluster's node can do without
	return place{cluster, task.TaskARN, address}, nil
}

// controller wires one.
func (f *controllerFlags) controller(ctx context.Context, inv *cli.Invocation, v controllerVariant, at place) (*controller.Controller, error) {
	state, err := v.wanted(setup.Options{
		Cluster: at.cluster.ARN, RolePath: f.rolePath, WholeAccount: f.whole, Partition: f.partition, Address: at.address,
	})
	if err != nil {
		return nil, err
	}
	metrics := controller.NewMetrics(cli.Version())
	v.consul.Wrap = metrics.Transport
	client, err := consulutil.NewClient(v.consul)
	if err != nil {
		return nil, err
	}
	lock, err := f.lock(at, v.name, consulutil.LockOptions{Consul: v.consul, Log: inv.Log})
	if err != nil {
		return nil, err
	}
	tasks, err := ecsReader(ctx, at.cluster, f.rate)
	if err != nil {
		return nil, err
	}
	s := &setup.Setup{Client: client, Wanted: state, Log: inv.Log}
	return controller.New(controller.Options{
		Interval: f.interval, Rate: f.rate,
		Lock:  lock,
		Setup: s,
		Cleaner: controller.NewCleaner(controller.CleanerOptions{
			Consul: client, ECS: tasks, Cluster: at.cluster, Partition: f.partition, Log: inv.Log, Leftovers: v.leftovers,
			EnsureNamespaces: s.EnsureNamespaces,
		}),
		Metrics: metrics,
		Log:     inv.Log,
	}), nil
}

// agentLeftovers are what tasks of the agent generation leave.
func agentLeftovers() controller.Leftovers {
	return controller.Leftovers{Methods: []string{config.ClientAuthMethod, config.ServiceAuthMethod}}
}

// ecsReader reads ECS in the cluster's region, which wins over the environment's.
func ecsReader(ctx context.Context, cluster awsutil.Cluster, rate float64) (*awsutil.ECSReader, error) {
	config, err := awsutil.LoadConfig(ctx, awsutil.LoadOptions{Region: cluster.Region, UserAgent: controllerAgent, Version: cli.Version()})
	if err != nil {
		return nil, err
	}
	return awsutil.NewECSReader(config, awsutil.ECSReaderOptions{CallsPerSecond: rate}), nil
}

// serve serves until stop is called.
func serve(listener net.Listener, log hclog.Logger, server *http.Server) (stop func()) {
	server.IdleTimeout = time.Minute
	server.ErrorLog = log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug})
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("HTTP server stopped", logkey.Error, err)
		}
	}()
	return func() {
		// With two locks to release, 2 s each at most, the end stays below 5 s.
		ctx, cancel := context.WithTimeout(context.Background(), time.Second/2)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
	}
}

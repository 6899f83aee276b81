package command

import (
	"context"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/control"
	"github.com/meshtask/consul-ecs/localecs/scenario"
)

// Scenario is scenario.Options.Attend of a run whose directory is dir.
func Scenario(dir string, log hclog.Logger) func(*scenario.LiveRun) (leave func()) {
	return func(l *scenario.LiveRun) func() {
		return serve(control.ServerOptions{Command: "run", Name: l.Name(), Directory: dir, World: control.New(control.RegionOptions{
			Region: l.Region(), MayEnd: l.MayEnd, Planned: l.Planned, End: l.End,
			Consul: func() *control.Consul {
				address, token, passing, ok := l.Consul()
				if !ok {
					return nil
				}
				return &control.Consul{Address: address, Token: token, Passing: passing}
			},
		})}, log)
	}
}

// Region does the same for a region without a run, that of a command. end is called
// when all its tasks were stopped; leave is to be called when nothing runs any more.
func Region(command, name string, r *cluster.Region, dir string, end func(), log hclog.Logger) (leave func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var draining sync.WaitGroup
	drain := sync.OnceFunc(func() {
		draining.Go(func() {
			if err := r.Drain(ctx, "localecs stop -all"); err != nil && ctx.Err() == nil {
				log.Warn("tasks were not stopped in order", logkey.Error, err)
			}
			end()
		})
	})
	closeSocket := serve(control.ServerOptions{Command: command, Name: name, Directory: dir, World: control.New(control.RegionOptions{Region: r, End: drain})}, log)
	return func() {
		cancel()
		draining.Wait()
		closeSocket()
	}
}

// serve serves until leave. A run without a socket is a run all the same.
func serve(o control.ServerOptions, log hclog.Logger) (leave func()) {
	o.Version = cli.Version()
	s, err := control.Serve(o)
	if err != nil {
		log.Warn("localecs ps, logs -f, wait, exec and stop cannot reach this run", logkey.Error, err)
		return func() {}
	}
	return func() {
		if err := s.Close(); err != nil {
			log.Warn("the outcome of the run was not sent to localecs wait, or its control socket was not removed", logkey.Error, err)
		}
	}
}

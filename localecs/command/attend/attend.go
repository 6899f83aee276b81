// Package attend gives runs their control sockets, by which ps, logs, wait, exec
// and stop find them.
//
// Owns: nothing. Never does: end a run because it has no socket.
// Start reading at: Scenario.
package attend

import (
	"context"
	"slices"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/localecs/control"
	"github.com/meshtask/consul-ecs/localecs/control/world"
	"github.com/meshtask/consul-ecs/localecs/region"
	"github.com/meshtask/consul-ecs/localecs/scenario/live"
)

// Scenario is scenario.Options.Attend of a run whose directory is dir.
func Scenario(dir string, log hclog.Logger) func(*live.Run) (leave func()) {
	return func(l *live.Run) func() {
		return serve(control.Options{Command: "run", Name: l.Name(), Directory: dir, World: world.New(world.Options{
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

// Region does the same for a region without a scenario, that of a command, which is
// about to start the tasks that are planned: nil where others start them. end is called
// when all its tasks were stopped; leave is to be called when nothing runs any more.
func Region(command, name string, planned []string, r *region.Region, dir string, end func(), log hclog.Logger) (leave func()) {
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
	closeSocket := serve(control.Options{Command: command, Name: name, Directory: dir, World: world.New(world.Options{Region: r, Planned: toCome(planned, r), End: drain})}, log)
	return func() {
		cancel()
		draining.Wait()
		closeSocket()
	}
}

// toCome are those of the planned tasks that have not begun. What has begun is not
// asked for again: the region forgets tasks an hour after their end.
func toCome(planned []string, r *region.Region) func() []string {
	if planned == nil {
		return nil
	}
	var mu sync.Mutex
	planned = slices.Clone(planned)
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		begun := r.Tasks()
		planned = slices.DeleteFunc(planned, func(name string) bool {
			return slices.ContainsFunc(begun, func(b region.Begun) bool { return b.Name == name })
		})
		return slices.Clone(planned)
	}
}

// serve serves until leave. A run without a socket is a run all the same.
func serve(o control.Options, log hclog.Logger) (leave func()) {
	o.Version = cli.Version()
	s, err := control.Serve(o)
	if err != nil {
		log.Warn("localecs ps, logs -f, wait, exec and stop cannot reach this run", logkey.Error, err)
		return func() {}
	}
	return func() {
		if err := s.Close(); err != nil {
			log.Warn("how the run has ended is not told to localecs wait, or its control socket is left", logkey.Error, err)
		}
	}
}

package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/meshtask/consul-ecs/localecs/host"
)

// Group is what starts the containers of one task, or those that are no task's.
type Group interface {
	// Start starts a container and returns when its program runs; it gives up when
	// ctx ends. Any error is a *StartError, or ErrClosed.
	Start(ctx context.Context, s Spec) (*Container, error)
	// Close releases what they share. They must have ended.
	Close() error
}

// GroupSpec is what the containers of a group share.
type GroupSpec struct {
	// Name is the task's ID.
	Name string
	// NetNS is the network; nil is the host's.
	NetNS *os.File
	// SharePIDs makes one pid namespace for all: pidMode task.
	SharePIDs bool
	// Memory limits and measures what they use, in bytes; nil does neither, and 0 only
	// measures.
	Memory *uint64
}

type group struct {
	runtime *Runtime
	spec    GroupSpec
	pids    *pidNamespace
	budget  *ControlGroup
}

// Group makes a group. Where the host cannot limit memory, that is logged once.
func (r *Runtime) Group(s GroupSpec) (Group, error) {
	g := &group{runtime: r, spec: s}
	var err error
	if s.SharePIDs {
		if g.pids, err = r.sharePIDs(); err != nil {
			return nil, err
		}
	}
	if s.Memory != nil {
		if g.budget, err = r.Limit(s.Name, *s.Memory); err != nil {
			return nil, errors.Join(err, g.Close())
		}
	}
	return g, nil
}

// Start starts a container with what the group shares. That is quick: ctx is not
// used.
func (g *group) Start(_ context.Context, s Spec) (*Container, error) {
	s.netNS, s.pids, s.budget = g.spec.NetNS, g.pids, g.budget
	return g.runtime.Start(s)
}

// Close releases the budget and the pid namespace.
func (g *group) Close() error {
	err := g.budget.Close()
	if g.pids != nil {
		err = errors.Join(err, g.pids.Close())
	}
	return err
}

// Pull finds everything that the image of that name lists on this host, and
// returns it. The error is a *NotFoundError when something is not there, and a
// *host.MissingError when this host cannot even look.
func (r *Runtime) Pull(_ context.Context, name string) (Image, error) {
	i, ok := r.known.Find(name)
	if !ok {
		return i, fmt.Errorf("pull access denied for %s: not among the known images", name)
	}
	_, err := r.images.Binds(i)
	return i, host.Shortage(err)
}

package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/meshtask/consul-ecs/localecs/docker"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// containers runs them: as processes of this host, or in an engine.
type containers interface {
	// Pull gets an image with its defaults by its name, until ctx ends.
	Pull(ctx context.Context, name string) (runtime.Image, error)
	// Group makes what starts the containers of a task.
	Group(s runtime.GroupSpec) (runtime.Group, error)
	// Lost is closed when no container can run any more, and Err is the reason; also before that.
	Lost() <-chan struct{}
	Err() error
	Close() error
}

// open makes network and runtime. In an engine a namespace is a container's, so the engine comes first.
func (c *Cluster) open() (err error) {
	o := c.options
	wires := network.Options{Mode: o.Network, Subnet: o.Subnet, Region: o.Region}
	var closers []func() error // of what was opened, last opened first
	defer func() {
		for i := len(closers); err != nil && i > 0; i-- {
			err = errors.Join(err, closers[i-1]())
		}
	}()
	if o.Docker != "" {
		e, err := docker.Open(docker.Options{Address: o.Docker, Dir: o.Dir, Images: o.Images, Log: o.Log})
		if err != nil {
			return err
		}
		c.runtime, wires.Namespace = e, e.Namespace
		closers = append(closers, e.Close)
	}
	if c.fabric, err = network.New(wires); err != nil {
		return fmt.Errorf("make network: %w", err)
	}
	closers = append(closers, c.fabric.Close)
	if o.Docker == "" {
		r, err := runtime.New(runtime.Options{Images: o.Images, Log: o.Log})
		if err != nil {
			return fmt.Errorf("make runtime: %w", err)
		}
		c.runtime = r
		closers = append(closers, r.Close)
	}
	if c.group, err = c.runtime.Group(runtime.GroupSpec{Name: "vpc", NetNS: c.fabric.Infra().File()}); err != nil {
		return err
	}
	lost := c.runtime.Lost()
	go func() {
		select {
		case <-lost:
			c.fatal(c.runtime.Err())
		case <-c.gone:
		}
	}()
	return nil
}

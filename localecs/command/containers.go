package command

import (
	"flag"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/localecs/docker"
	"github.com/meshtask/consul-ecs/localecs/network"
)

// What runs containers.
const (
	processRuntime = "process"
	dockerRuntime  = "docker"
)

// containersFlag says what runs containers.
type containersFlag struct{ runtime string }

func (c *containersFlag) add(fs *flag.FlagSet) {
	c.runtime = processRuntime
	fs.StringVar(&c.runtime, "runtime", processRuntime, "`what` runs containers: process, as processes of this host, or docker, in the Docker engine at DOCKER_HOST or "+docker.DefaultAddress+", as root on its host; images that are not in the scenario are the engine's")
}

// engine is the address of the Docker engine to use, empty for none.
func (c *containersFlag) engine(inv *cli.Invocation, mode network.Mode) (string, error) {
	switch {
	case c.runtime == processRuntime:
		return "", nil
	case c.runtime != dockerRuntime:
		return "", cli.Usagef("-runtime: %q: want %s or %s", c.runtime, processRuntime, dockerRuntime)
	case mode == network.Host:
		return "", cli.Usagef("-runtime docker: tasks have networks of their own: leave -network host out")
	}
	address := inv.Getenv("DOCKER_HOST")
	if address == "" {
		address = docker.DefaultAddress
	}
	if err := docker.CheckAddress(address); err != nil {
		return "", &cli.UsageError{Err: err}
	}
	return address, nil
}

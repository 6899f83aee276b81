package command

import (
	"flag"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/localecs/docker"
	"github.com/meshtask/consul-ecs/localecs/network"
)

// What -runtime says.
const (
	Process = "process"
	Docker  = "docker"
)

// Containers is the flag that says what runs them.
type Containers struct{ runtime string }

// Add declares the flag.
func (c *Containers) Add(fs *flag.FlagSet) {
	c.runtime = Process
	fs.StringVar(&c.runtime, "runtime", Process, "`what` runs containers: process, as processes of this host, or docker, in the Docker engine at DOCKER_HOST or "+docker.DefaultAddress+", as root on its host; images that are not in the scenario are the engine's")
}

// Engine is the address of the Docker engine to use, empty for none.
func (c *Containers) Engine(inv *cli.Invocation, mode network.Mode) (string, error) {
	switch {
	case c.runtime == Process:
		return "", nil
	case c.runtime != Docker:
		return "", cli.Usagef("-runtime: %q: want %s or %s", c.runtime, Process, Docker)
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

// Simulated is what is wrong with the flag where tasks have no containers.
func (c *Containers) Simulated() error {
	if c.runtime != Process {
		return cli.Usagef("-runtime: tasks have no containers with -simulated: leave one of them out")
	}
	return nil
}

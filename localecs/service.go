package localecs

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	"github.com/meshtask/consul-ecs/localecs/network/ports"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// Service is a process in the VPC but outside of ECS, such as a Consul server.
type Service struct {
	Name, Image string
	Args        []string
	// Address is the one it will listen on; it must be the subnet's last free
	// one.
	Address string
	// Ports are those it will listen on there.
	Ports []ports.Port
	// Dirs are empty writable directories in it.
	Dirs []string
}

// RunningService is a started Service.
type RunningService struct {
	LogFile   string
	container *runtime.Container
	log       *logFile
	once      sync.Once
}

// Done is closed when the process has ended.
func (s *RunningService) Done() <-chan struct{} { return s.container.Done() }

func (s *RunningService) stop() {
	s.once.Do(func() {
		s.container.Kill()
		<-s.container.Done()
		s.log.Close()
	})
}

// reservePorts claims a service's ports at its address, where it shares them.
func (c *Cluster) reservePorts(owner string, ip netip.Addr, wanted []ports.Port) error {
	var errs []error
	for _, p := range wanted {
		p.Address = ip
		errs = append(errs, c.fabric.Infra().Reserve(p, owner))
	}
	return ports.Join(errs...)
}

// StartService starts a process in the VPC's own network.
func (c *Cluster) StartService(s Service) (*RunningService, error) {
	image, ok := c.options.Images[s.Image]
	if !ok {
		return nil, fmt.Errorf("image %s: not among the scenario's images", s.Image)
	}
	got, err := c.fabric.AddInfraAddress()
	if err != nil {
		return nil, err
	}
	if got.String() != s.Address {
		return nil, fmt.Errorf("address of %s: %q cannot be had; the next one for services in %s is %s", s.Name, s.Address, c.options.Subnet, got)
	}
	if err := c.reservePorts(s.Name, got, s.Ports); err != nil {
		return nil, err
	}
	var mounts []runtime.Mount
	for i, target := range s.Dirs {
		dir := filepath.Join(c.options.Dir, "volumes", s.Name, fmt.Sprint(i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("make directory of %s: %w", s.Name, err)
		}
		mounts = append(mounts, runtime.Mount{Source: dir, Target: target})
	}
	log, err := c.openLog(filepath.Join(c.LogDir(), s.Name+".log"))
	if err != nil {
		return nil, fmt.Errorf("make log of %s: %w", s.Name, err)
	}
	infra := c.fabric.Infra()
	container, err := c.runtime.Start(runtime.Spec{
		Name: s.Name, Image: image, Args: s.Args, Mounts: mounts,
		Hostname: s.Name, Hosts: infra.Hosts(), ResolvConf: infra.ResolvConf(), NetNS: infra.File(),
		Stdout: log, Stderr: log,
	})
	if err != nil {
		log.Close()
		return nil, err
	}
	started := &RunningService{LogFile: log.Name(), container: container, log: log}
	c.mu.Lock()
	c.services = append(c.services, started)
	c.mu.Unlock()
	return started, nil
}

package infra

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/localecs/logfile"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/network/ports"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/localecs/runtime/image"
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

// Host is what services run on.
type Host struct {
	Fabric *network.Fabric
	// Pull gets an image by its name, Group starts what is in the VPC's network.
	Pull  func(name string) (image.Image, error)
	Group runtime.Group
	// Volumes is where the services' directories are, Logs where their logs are.
	Volumes, Logs string
	Log           hclog.Logger
}

// Start starts a process in the VPC's own network.
func (h Host) Start(s Service) (*Running, error) {
	image, err := h.Pull(s.Image)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", s.Image, err)
	}
	if err := h.address(s); err != nil {
		return nil, err
	}
	mounts, err := h.mounts(s)
	if err != nil {
		return nil, err
	}
	log, err := logfile.Open(filepath.Join(h.Logs, s.Name+".log"), h.Log)
	if err != nil {
		return nil, fmt.Errorf("make log of %s: %w", s.Name, err)
	}
	infra := h.Fabric.Infra()
	return start(h.Group, log, runtime.Spec{
		Name: s.Name, Image: image, Args: s.Args, Mounts: mounts,
		Hostname: s.Name, Hosts: infra.Hosts(), ResolvConf: infra.ResolvConf(),
		Stdout: log, Stderr: log,
	})
}

// address takes the service's address, and its ports there where they are shared.
func (h Host) address(s Service) error {
	got, err := h.Fabric.AddInfraAddress()
	if err != nil {
		return err
	}
	if got.String() != s.Address {
		return fmt.Errorf("address of %s: %q cannot be had; the next one for services in %s is %s", s.Name, s.Address, h.Fabric.Infra().CIDR, got)
	}
	return h.reserve(s, got)
}

func (h Host) reserve(s Service, ip netip.Addr) error {
	var errs []error
	for _, p := range s.Ports {
		p.Address = ip
		errs = append(errs, h.Fabric.Infra().Reserve(p, s.Name))
	}
	return ports.Join(errs...)
}

func (h Host) mounts(s Service) ([]runtime.Mount, error) {
	var mounts []runtime.Mount
	for i, target := range s.Dirs {
		dir := filepath.Join(h.Volumes, s.Name, fmt.Sprint(i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("make directory of %s: %w", s.Name, err)
		}
		mounts = append(mounts, runtime.Mount{Source: dir, Target: target})
	}
	return mounts, nil
}

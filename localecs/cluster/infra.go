package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path"
	"path/filepath"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/network"
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
	Ports []network.Port
	// Dirs are empty writable directories in it, which its user alone can read.
	Dirs []string
	// Files are files in it that no other process can read, by path, each in a
	// directory of its own.
	Files map[string]string
}

// Host is what services run on.
type Host struct {
	Fabric *network.Fabric
	// Pull gets an image by its name, Group starts what is in the VPC's network.
	Pull  func(ctx context.Context, name string) (runtime.Image, error)
	Group runtime.Group
	// Volumes is where the services' directories are, Logs where their logs are.
	Volumes, Logs string
	Log           hclog.Logger
}

// Start starts a process in the VPC's own network; it gives up when ctx ends.
func (h Host) Start(ctx context.Context, s Service) (*Running, error) {
	image, err := h.Pull(ctx, s.Image)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", s.Image, err)
	}
	if err := h.address(s); err != nil {
		return nil, err
	}
	owner, err := image.Account("")
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", s.Image, err)
	}
	mounts, err := h.mounts(s, owner)
	if err != nil {
		return nil, err
	}
	log, err := OpenLog(filepath.Join(h.Logs, s.Name+".log"), h.Log)
	if err != nil {
		return nil, fmt.Errorf("make log of %s: %w", s.Name, err)
	}
	infra := h.Fabric.Infra()
	return startProgram(ctx, h.Group, log, runtime.Spec{
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
	return network.Join(errs...)
}

// mounts makes the directories and files of a service; files are for the account that
// its program runs as.
func (h Host) mounts(s Service, owner runtime.Account) ([]runtime.Mount, error) {
	var mounts []runtime.Mount
	add := func(target string) (dir string, err error) {
		dir = filepath.Join(h.Volumes, s.Name, fmt.Sprint(len(mounts)))
		mounts = append(mounts, runtime.Mount{Source: dir, Target: target})
		return dir, os.MkdirAll(dir, 0o700)
	}
	ids, err := host.Own()
	if err != nil {
		return nil, err
	}
	uid, gid, _ := ids.Fit(owner.UID, owner.GID)
	give := func(path string) error { return os.Chown(path, uid, gid) }
	for _, target := range s.Dirs {
		if _, err := add(target); err != nil {
			return nil, fmt.Errorf("make directory of %s: %w", s.Name, err)
		}
	}
	for target, text := range s.Files {
		dir, err := add(path.Dir(target))
		if err == nil {
			name := filepath.Join(dir, path.Base(target))
			err = errors.Join(os.WriteFile(name, []byte(text), 0o600), give(name), give(dir))
		}
		if err != nil {
			return nil, fmt.Errorf("make file of %s: %w", s.Name, err)
		}
	}
	return mounts, nil
}

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// Service is a process in the VPC but outside of ECS, such as a Consul server.
type Service struct {
	Name, Image string
	Args        []string
	// Address is the one it will listen on; it must be the subnet's last free one.
	Address string
	// Ports are those it will listen on there.
	Ports []network.Port
	// Dirs are empty writable directories in it, which its user alone can read.
	Dirs []string
	// Files are files in it that no other process can read, by path, each in its own directory.
	Files map[string]string
}

// StartService starts a process in the VPC's own network, until Close; it gives up when ctx ends.
func (c *Cluster) StartService(ctx context.Context, s Service) (*Running, error) {
	end, ok := c.starting.Begin()
	if !ok {
		return nil, errClosed
	}
	defer end()
	image, err := c.runtime.Pull(ctx, s.Image)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", s.Image, err)
	}
	if err := s.claimAddress(c.fabric); err != nil {
		return nil, err
	}
	owner, err := image.Account("")
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", s.Image, err)
	}
	mounts, err := s.mounts(filepath.Join(c.volumeDir(), s.Name), owner)
	if err != nil {
		return nil, err
	}
	log, err := openLog(filepath.Join(c.LogDir(), s.Name+".log"), c.options.Log)
	if err != nil {
		return nil, fmt.Errorf("make log of %s: %w", s.Name, err)
	}
	infra := c.fabric.Infra()
	started, err := startProgram(ctx, c.group, log, runtime.Spec{
		Name: s.Name, Image: image, Args: s.Args, Mounts: mounts,
		Hostname: s.Name, Hosts: infra.Hosts(), ResolvConf: infra.ResolvConf(),
		Stdout: log, Stderr: log,
	})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.services = append(c.services, started)
	return started, nil
}

// claimAddress adds the service's address to the VPC, and claims its ports.
func (s Service) claimAddress(f *network.Fabric) error {
	ip, err := f.AddInfraAddress()
	if err != nil {
		return err
	}
	infra := f.Infra()
	if ip.String() != s.Address {
		return fmt.Errorf("address of %s: %q is not available; the next one for services in %s is %s",
			s.Name, s.Address, infra.CIDR, ip)
	}
	var errs []error
	for _, p := range s.Ports {
		p.Address = ip
		errs = append(errs, infra.Reserve(p, s.Name))
	}
	return network.Join(errs...)
}

// mounts makes the directories and files of a service in dir; files are for the account that its program runs as.
func (s Service) mounts(dir string, owner runtime.Account) ([]runtime.Mount, error) {
	var mounts []runtime.Mount
	add := func(target string) (source string, err error) {
		source = filepath.Join(dir, fmt.Sprint(len(mounts)))
		mounts = append(mounts, runtime.Mount{Source: source, Target: target})
		return source, os.MkdirAll(source, 0o700)
	}
	ids, err := host.CurrentIDs()
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
			if err = os.WriteFile(name, []byte(text), 0o600); err == nil {
				err = errors.Join(give(name), give(dir))
			}
		}
		if err != nil {
			return nil, fmt.Errorf("make file of %s: %w", s.Name, err)
		}
	}
	return mounts, nil
}

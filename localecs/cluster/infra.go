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
	// Address is the one it will listen on; it must be the subnet's last free
	// one.
	Address string
	// Ports are those it will listen on there.
	Ports []network.Port
	// Dirs are empty writable directories in it, which its user alone can read.
	Dirs []string
	// Files are files in it that no other process can read, by path, each in its
	// own directory.
	Files map[string]string
}

// StartService starts a process in the VPC's own network, until Close; it gives up when
// ctx ends.
func (c *Cluster) StartService(ctx context.Context, s Service) (*Running, error) {
	made, err := c.making.begin()
	if err != nil {
		return nil, err
	}
	defer made()
	image, err := c.runtime.Pull(ctx, s.Image)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", s.Image, err)
	}
	if err := c.address(s); err != nil {
		return nil, err
	}
	owner, err := image.Account("")
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", s.Image, err)
	}
	mounts, err := c.mounts(s, owner)
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

func (c *Cluster) address(s Service) error {
	ip, err := c.fabric.AddInfraAddress()
	if err != nil {
		return err
	}
	infra := c.fabric.Infra()
	if ip.String() != s.Address {
		return fmt.Errorf("address of %s: %q is not available; the next one for services in %s is %s", s.Name, s.Address, infra.CIDR, ip)
	}
	var errs []error
	for _, p := range s.Ports {
		p.Address = ip
		errs = append(errs, infra.Reserve(p, s.Name))
	}
	return network.Join(errs...)
}

// mounts makes the directories and files of a service; files are for the account that
// its program runs as.
func (c *Cluster) mounts(s Service, owner runtime.Account) ([]runtime.Mount, error) {
	var mounts []runtime.Mount
	add := func(target string) (dir string, err error) {
		dir = filepath.Join(c.volumeDir(), s.Name, fmt.Sprint(len(mounts)))
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

package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// pause is a container that does nothing: its network namespace is a task's, and
// its pid namespace that of pidMode task.
type pause struct {
	id    string
	owner string
}

// Namespace makes an empty network namespace, as network.Options has it: that of a
// container which owner's containers join. It lasts until their Group is closed.
func (e *Engine) Namespace(owner, hostname string) (*os.File, error) {
	if err := e.serving(); err != nil {
		return nil, err
	}
	ctx := context.Background()
	id, err := e.startPause(ctx, owner, hostname)
	if err != nil {
		return nil, fmt.Errorf("make a pause container: %w", err)
	}
	ns, err := e.network(ctx, id)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("find a pause container's network: %w", err), remove(ctx, e.api, id))
	}
	inode, err := inodeOf(ns)
	if err != nil {
		return nil, errors.Join(err, ns.Close(), remove(ctx, e.api, id))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pauses[inode] = &pause{id: id, owner: owner}
	return ns, nil
}

func (e *Engine) startPause(ctx context.Context, owner, hostname string) (id string, err error) {
	self, err := os.Readlink(host.SelfExe)
	if err != nil {
		return "", err
	}
	program := runtime.Image{Name: "pause", Programs: map[string]string{pausePath: self}, Entrypoint: []string{pausePath}}
	made, err := e.makeImage(ctx, program)
	if err != nil {
		return "", err
	}
	config := &container.Config{Image: made, Hostname: hostname, Labels: e.labels(), Healthcheck: &container.HealthConfig{Test: []string{"NONE"}}}
	host := &container.HostConfig{NetworkMode: "none", ReadonlyRootfs: true, CapDrop: []string{"ALL"}, LogConfig: container.LogConfig{Type: "none"}}
	created, err := e.api.ContainerCreate(ctx, client.ContainerCreateOptions{Config: config, HostConfig: host, Name: e.name(owner, "pause")})
	if err != nil {
		return "", err
	}
	if _, err := e.api.ContainerStart(ctx, created.ID, client.ContainerStartOptions{}); err != nil {
		return "", errors.Join(err, remove(ctx, e.api, created.ID))
	}
	return created.ID, nil
}

// network opens a pause container's network namespace. It learns how the engine
// numbers processes on the way.
func (e *Engine) network(ctx context.Context, id string) (*os.File, error) {
	found, err := e.api.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return nil, err
	}
	state := found.Container.State
	if state.Pid == 0 {
		return nil, fmt.Errorf("the container exited with code %d", state.ExitCode)
	}
	pid, level, err := pidLevel(id, state.Pid)
	if err != nil {
		return nil, fmt.Errorf("%w; run localecs there, or %s", err, aside)
	}
	e.mu.Lock()
	e.level = level
	e.mu.Unlock()
	return os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
}

func inodeOf(f *os.File) (uint64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Sys().(*syscall.Stat_t).Ino, nil
}

type group struct {
	engine *Engine
	spec   runtime.GroupSpec
	pause  *pause
	inode  uint64
	// files is where the containers' own files are.
	files    string
	removals sync.WaitGroup

	mu      sync.Mutex
	started int
	volumes map[string]bool
}

// Group makes a group in a network that Namespace has made.
func (e *Engine) Group(s runtime.GroupSpec) (runtime.Group, error) {
	if s.NetNS == nil {
		return nil, errors.New("containers of a Docker engine need a network namespace")
	}
	inode, err := inodeOf(s.NetNS)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.pauses[inode]
	if p == nil {
		return nil, fmt.Errorf("no pause container has the network of %s", s.Name)
	}
	return &group{engine: e, spec: s, pause: p, inode: inode, files: filepath.Join(e.options.Dir, filesDir, p.owner), volumes: map[string]bool{}}, nil
}

const filesDir = "engine"

// Close removes the pause container, and the volumes, whose content stays.
func (g *group) Close() error {
	g.removals.Wait()
	g.engine.mu.Lock()
	delete(g.engine.pauses, g.inode)
	g.engine.mu.Unlock()
	ctx := context.Background()
	errs := []error{remove(ctx, g.engine.api, g.pause.id)}
	for name := range g.volumes {
		_, err := g.engine.api.VolumeRemove(ctx, name, client.VolumeRemoveOptions{Force: true})
		errs = append(errs, err)
	}
	return errors.Join(append(errs, os.RemoveAll(g.files))...)
}

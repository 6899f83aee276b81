package docker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/go-units"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// Start starts a container. It is removed as soon as it has ended.
func (g *group) Start(ctx context.Context, s runtime.Spec) (*runtime.Container, error) {
	if err := g.engine.serving(); err != nil {
		return nil, err
	}
	lowered := g.engine.limited.Load()
	if lowered {
		s.Ulimits, _ = runtime.LowerLimits(s.Ulimits)
	}
	c, err := g.start(ctx, s)
	if err != nil && strings.Contains(err.Error(), "setting rlimit") && !lowered {
		c, err = g.start(ctx, g.engine.lower(s))
	}
	if err != nil {
		return nil, &runtime.StartError{Container: s.Name, Err: cause(err)}
	}
	return c, nil
}

// lower returns a container with limits that the engine may give, since it may not raise its own.
func (e *Engine) lower(s runtime.Spec) runtime.Spec {
	limits, lowered := runtime.LowerLimits(s.Ulimits)
	if !e.limited.Swap(true) {
		e.options.Log.Warn(runtime.HostLacks, logkey.Container, s.Name, logkey.Reason, strings.Join(lowered, "; "))
	}
	s.Ulimits = limits
	return s
}

func (g *group) start(ctx context.Context, s runtime.Spec) (*runtime.Container, error) {
	if len(s.Args) == 0 {
		return nil, fmt.Errorf("no command specified: neither the definition nor image %q has one", s.Image.Name)
	}
	g.mu.Lock()
	g.started++
	number := strconv.Itoa(g.started)
	g.mu.Unlock()
	host, err := g.host(s, number)
	if err != nil {
		return nil, err
	}
	id, err := g.create(ctx, s, host, number)
	if err != nil {
		return nil, err
	}
	l, err := g.live(ctx, id, s)
	if err != nil {
		return nil, errors.Join(err, remove(context.WithoutCancel(ctx), g.engine.api, id))
	}
	c := runtime.NewContainer(l.processes, l, l.started, nil)
	g.engine.running.Go(c.Watch)
	return c, nil
}

const shortID = 8

// create makes a container. An image that another process has removed is got again.
func (g *group) create(ctx context.Context, s runtime.Spec, host *container.HostConfig, number string) (string, error) {
	e := g.engine
	for again := false; ; again = true {
		id, err := e.imageID(ctx, s.Image.Name)
		if err != nil {
			return "", err
		}
		config := &container.Config{
			Image: id, Entrypoint: s.Args[:1], Cmd: s.Args[1:], Env: s.Env, User: s.User, WorkingDir: s.WorkingDir,
			Labels: e.labels(), AttachStdout: true, AttachStderr: true,
			// Neither the image's check nor the engine's idea of a start interval:
			// the ECS agent's probes are the scheduler's.
			Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		}
		name := e.name(s.Name, g.pause.owner[:min(len(g.pause.owner), shortID)], number)
		created, err := e.api.ContainerCreate(ctx, client.ContainerCreateOptions{Config: config, HostConfig: host, Name: name})
		if err == nil || again || !errdefs.IsNotFound(err) {
			return created.ID, err
		}
		e.forget(s.Image.Name)
	}
}

func (g *group) host(s runtime.Spec, number string) (*container.HostConfig, error) {
	h := &container.HostConfig{
		NetworkMode:    container.NetworkMode("container:" + g.pause.id),
		ReadonlyRootfs: s.ReadOnlyRoot,
		LogConfig:      container.LogConfig{Type: "none"},
		Init:           &s.InitProcess,
	}
	if g.spec.SharePIDs {
		h.PidMode = container.PidMode("container:" + g.pause.id)
	}
	if g.spec.Memory != nil {
		h.Memory = int64(s.Memory)
		h.Memory = cmp.Or(h.Memory, int64(*g.spec.Memory))
		h.MemorySwap = h.Memory // no more with swap
	}
	for _, u := range s.Ulimits {
		h.Ulimits = append(h.Ulimits, &units.Ulimit{Name: u.Name, Soft: limit(u.Soft), Hard: limit(u.Hard)})
	}
	var err error
	if h.Mounts, err = g.mounts(s, number); err != nil {
		return nil, err
	}
	return h, nil
}

func limit(n uint64) int64 {
	if n > math.MaxInt64 {
		return -1
	}
	return int64(n)
}

func (g *group) mounts(s runtime.Spec, number string) ([]mount.Mount, error) {
	dir := filepath.Join(g.files, number)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the container's files: %w", err)
	}
	var mounts []mount.Mount
	at := map[string]int{}
	add := func(m mount.Mount) {
		if i, ok := at[m.Target]; ok { // of two the later wins
			mounts[i] = m
			return
		}
		at[m.Target] = len(mounts)
		mounts = append(mounts, m)
	}
	for name, text := range map[string]string{"hosts": s.Hosts, "resolv.conf": s.ResolvConf, "hostname": s.Hostname + "\n"} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return nil, fmt.Errorf("make the container's files: %w", err)
		}
		add(mount.Mount{Type: mount.TypeBind, Source: file, Target: "/etc/" + name, ReadOnly: s.ReadOnlyRoot})
	}
	for target, source := range s.Image.Files {
		if isDir(source) {
			add(mount.Mount{Type: mount.TypeBind, Source: source, Target: path.Clean(target), ReadOnly: true})
		}
	}
	for _, m := range s.Mounts {
		made, err := g.mount(m)
		if err != nil {
			return nil, err
		}
		add(made)
	}
	return mounts, nil
}

// mount shows a file, or a directory as a volume of the engine: it takes over what the image
// has there, owner included, as volumes of ECS tasks do.
func (g *group) mount(m runtime.Mount) (mount.Mount, error) {
	source, err := filepath.Abs(m.Source)
	if err != nil {
		return mount.Mount{}, fmt.Errorf("mount at %q: %w", m.Target, err)
	}
	if !isDir(source) {
		return mount.Mount{Type: mount.TypeBind, Source: source, Target: path.Clean(m.Target), ReadOnly: m.ReadOnly}, nil
	}
	sum := sha256.Sum256([]byte(source))
	name := g.engine.name(g.pause.owner, hex.EncodeToString(sum[:6]))
	g.mu.Lock()
	g.volumes[name] = true
	g.mu.Unlock()
	return mount.Mount{
		Type: mount.TypeVolume, Source: name, Target: path.Clean(m.Target), ReadOnly: m.ReadOnly,
		VolumeOptions: &mount.VolumeOptions{
			Labels:       g.engine.labels(),
			DriverConfig: &mount.Driver{Name: "local", Options: map[string]string{"type": "none", "o": "bind", "device": source}},
		},
	}, nil
}

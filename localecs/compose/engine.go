package compose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/client"

	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// What docker compose labels its containers with.
const (
	projectLabel = "com.docker.compose.project"
	oneOffLabel  = "com.docker.compose.oneoff"
)

// limit bounds one call of the engine.
const limit = 10 * time.Second

// Project is a docker compose project in an engine.
type Project struct {
	client *client.Client
	name   string
}

// Dial connects to the engine at host, a URL such as unix:///var/run/docker.sock. If name is empty, the
// project is that of the container self, the hostname of this process.
func Dial(ctx context.Context, host, name, self string) (*Project, error) {
	c, err := client.New(client.WithHost(host))
	if err != nil {
		return nil, fmt.Errorf("use the Docker engine at %s: %w", host, err)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if _, err := c.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		return nil, errors.Join(fmt.Errorf("ping the Docker engine at %s: %w", host, err), c.Close())
	}
	if name == "" {
		if name, err = ownProject(ctx, c, self); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return &Project{client: c, name: name}, nil
}

// ownProject returns the project of a container.
func ownProject(ctx context.Context, c *client.Client, self string) (string, error) {
	const remedy = "set -project to a name that docker compose ls lists"
	got, err := c.ContainerInspect(ctx, self, client.ContainerInspectOptions{})
	if errdefs.IsNotFound(err) {
		return "", fmt.Errorf("find the project: the engine has no container %s: %s", self, remedy)
	}
	if err != nil {
		return "", fmt.Errorf("find the project of container %s: %w", self, err)
	}
	name := got.Container.Config.Labels[projectLabel]
	if name == "" {
		return "", fmt.Errorf("find the project: container %s has no label %s: %s", self, projectLabel, remedy)
	}
	return name, nil
}

// Close closes the connection.
func (p *Project) Close() error { return p.client.Close() }

// Containers returns the containers with a task's label, without those of docker compose run.
func (p *Project) Containers(ctx context.Context) ([]Container, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	list, err := p.client.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: p.filter()})
	if err != nil {
		return nil, fmt.Errorf("list containers of project %s: %w", p.name, err)
	}
	var all []Container
	for _, c := range list.Items {
		if c.Labels[oneOffLabel] == "True" {
			continue
		}
		got, err := p.client.ContainerInspect(ctx, c.ID, client.ContainerInspectOptions{})
		if errdefs.IsNotFound(err) { // removed meanwhile
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("inspect container %s: %w", c.ID, err)
		}
		all = append(all, read(got.Container))
	}
	return all, nil
}

func (p *Project) filter() client.Filters {
	return client.Filters{}.Add("label", projectLabel+"="+p.name, taskLabel)
}

// read converts a container of the engine.
func read(got container.InspectResponse) Container {
	c := Container{
		ID: got.ID, Image: got.Image, RestartCount: got.RestartCount,
		Task: got.Config.Labels[taskLabel], Name: got.Config.Labels[containerLabel],
	}
	if s := got.State; s != nil {
		c.Status, c.ExitCode, c.OutOfMemory = string(s.Status), s.ExitCode, s.OOMKilled
		c.StartedAt, c.FinishedAt = moment(s.StartedAt), moment(s.FinishedAt)
		c.Health = health(s.Health)
	}
	if got.NetworkSettings == nil {
		return c
	}
	for _, n := range got.NetworkSettings.Networks {
		if !n.IPAddress.IsValid() { // not connected
			continue
		}
		c.Networks = append(c.Networks, network.Addressing{
			IP: n.IPAddress, Gateway: n.Gateway, CIDR: netip.PrefixFrom(n.IPAddress, n.IPPrefixLen).Masked(), MAC: net.HardwareAddr(n.MacAddress),
		})
	}
	return c
}

// moment parses a time of the engine, which writes the year 1 for none.
func moment(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.Year() <= 1 {
		return time.Time{}
	}
	return t
}

func health(h *container.Health) *Health {
	if h == nil || h.Status == container.NoHealthcheck {
		return nil
	}
	out := &Health{Status: string(h.Status)}
	if n := len(h.Log); n > 0 {
		last := h.Log[n-1]
		out.At, out.ExitCode, out.Output = last.End, last.ExitCode, last.Output
	}
	return out
}

// Stop stops the container with its own signal and timeout, and waits for it.
func (p *Project) Stop(ctx context.Context, id string) error {
	_, err := p.client.ContainerStop(ctx, id, client.ContainerStopOptions{})
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("stop container %s: %w", id, err)
	}
	return nil
}

// Stats returns a container's statistics; nil if the engine has none.
func (p *Project) Stats(ctx context.Context, id string) *metadata.Stats {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	got, err := p.client.ContainerStats(ctx, id, client.ContainerStatsOptions{})
	if err != nil {
		return nil
	}
	defer got.Body.Close()
	var s metadata.Stats // ECS shows docker's own object
	if json.NewDecoder(got.Body).Decode(&s) != nil {
		return nil
	}
	return &s
}

// StopRequest is a request to the engine to stop a container.
type StopRequest struct {
	Task, Container string
	At              time.Time
}

// Watch calls changed whenever a container of the project may have changed, with the stop request if
// that is the change, until ctx ends or the engine closes the stream.
func (p *Project) Watch(ctx context.Context, changed func(*StopRequest)) error {
	filter := p.filter()
	filter.Add("type", string(events.ContainerEventType))
	stream := p.client.Events(ctx, client.EventsListOptions{Filters: filter})
	for {
		select {
		case m := <-stream.Messages:
			if relevant(m.Action) {
				changed(p.stopRequest(ctx, m))
			}
		case err := <-stream.Err:
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("watch project %s: %w", p.name, err)
		}
	}
}

// relevant excludes the events of each health check.
func relevant(a events.Action) bool { return !strings.HasPrefix(string(a), "exec_") }

// stopRequest returns the stop request in an event: the engine sends the container's stop signal. To ECS
// other signals are no stop, and KILL is a crash.
func (p *Project) stopRequest(ctx context.Context, m events.Message) *StopRequest {
	sent, err := strconv.Atoi(m.Actor.Attributes["signal"])
	if m.Action != events.ActionKill || err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	want := syscall.SIGTERM
	if got, err := p.client.ContainerInspect(ctx, m.Actor.ID, client.ContainerInspectOptions{}); err == nil {
		if s, err := runtime.ParseSignal(got.Container.Config.StopSignal); err == nil {
			want = s
		}
	}
	if syscall.Signal(sent) != want {
		return nil
	}
	return &StopRequest{
		Task: m.Actor.Attributes[taskLabel], Container: m.Actor.Attributes[containerLabel],
		At: time.Unix(0, m.TimeNano),
	}
}

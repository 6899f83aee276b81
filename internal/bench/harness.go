package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// harness holds what all figures share: the programs and a directory.
type harness struct {
	dir string
	// program is consul-ecs as it is released.
	program  string
	runs     int
	progress io.Writer
}

func newHarness(ctx context.Context, runs int, progress io.Writer) (*harness, error) {
	dir, err := os.MkdirTemp("", "consul-ecs-bench-")
	if err != nil {
		return nil, err
	}
	h := &harness{dir: dir, runs: runs, progress: progress}
	h.say("building consul-ecs")
	if bin := os.Getenv("CONSUL_ECS_BIN"); bin != "" { // what make has built
		h.program = filepath.Join(bin, "consul-ecs")
	} else if h.program, err = h.build(ctx, "./cmd/consul-ecs"); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (h *harness) close() { os.RemoveAll(h.dir) }

func (h *harness) say(format string, args ...any) { fmt.Fprintf(h.progress, format+"\n", args...) }

// repeat returns the number of runs of a measurement whose own number is n.
func (h *harness) repeat(n int) int {
	if h.runs > 0 {
		return h.runs
	}
	return n
}

// build makes a static, stripped program of a package of this module and
// returns its path.
func (h *harness) build(ctx context.Context, pkg string) (string, error) {
	path := filepath.Join(h.dir, filepath.Base(pkg))
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, pkg)
	cmd.Dir = testkit.Root()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", pkg, err, out)
	}
	return path, nil
}

// measure runs one figure and clears up after it.
func (h *harness) measure(ctx context.Context, f figure) ([]row, error) {
	ctx, cancel := context.WithTimeout(ctx, figureLimit)
	defer cancel()
	s := &fixture{harness: h, ctx: ctx}
	defer s.close()
	return f.run(s)
}

// fixture is one figure's setup: servers and processes that end with it.
type fixture struct {
	harness *harness
	ctx     context.Context
	closers []func()
}

// onClose adds what is to be undone, last first.
func (s *fixture) onClose(f func()) { s.closers = append(s.closers, f) }

func (s *fixture) close() {
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
	s.closers = nil
}

// pause sleeps unless the figure is cut short.
func (s *fixture) pause(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// until asks every so often whether something is so, at most for the limit,
// and returns the moment it was.
func (s *fixture) until(what string, every, limit time.Duration, so func() bool) (time.Time, error) {
	deadline := time.Now().Add(limit)
	for {
		if so() {
			return time.Now(), nil
		}
		if time.Now().After(deadline) {
			return time.Time{}, fmt.Errorf("did not happen in %s: %s", limit, what)
		}
		if err := s.pause(every); err != nil {
			return time.Time{}, err
		}
	}
}

// serve answers on loopback until the figure's end. An empty address takes a
// free port.
func (s *fixture) serve(address string, h http.Handler) (string, error) {
	if address == "" {
		address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "", err
	}
	srv := &http.Server{Handler: h}
	go srv.Serve(l)
	s.onClose(func() { srv.Close() })
	return l.Addr().String(), nil
}

// consul is a real agent behind a proxy that records every request.
type consul struct {
	*testkit.Consul
	// address is the proxy's; requests its record.
	address  string
	requests *recorder
	// direct asks the agent itself, with all rights.
	direct *api.Client
}

func (s *fixture) consul(acl bool) (*consul, error) {
	server, err := testkit.StartConsul(testkit.ConsulOptions{ACL: acl})
	if err != nil {
		return nil, fmt.Errorf("start consul: %w", err)
	}
	if server == nil {
		return nil, errors.New("consul not found: run 'make tools'")
	}
	s.onClose(server.Stop)
	c := &consul{Consul: server, requests: &recorder{}}
	if c.address, err = s.serve("", c.requests.proxy(server.HTTPAddr)); err != nil {
		return nil, err
	}
	c.direct, err = consulutil.NewClient(consulutil.Options{Address: server.HTTPAddr, Token: server.Token})
	return c, err
}

// forget deregisters a task's service and proxy.
func (c *consul) forget(t *task) error {
	return errors.Join(
		c.direct.Agent().ServiceDeregister(t.proxyID()),
		c.direct.Agent().ServiceDeregister(t.serviceID()),
	)
}

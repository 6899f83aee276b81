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

// lab is what all figures share: the programs and a place for files.
type lab struct {
	dir string
	// program is consul-ecs as it is released.
	program  string
	runs     int
	progress io.Writer
}

func newLab(ctx context.Context, runs int, progress io.Writer) (*lab, error) {
	dir, err := os.MkdirTemp("", "consul-ecs-bench-")
	if err != nil {
		return nil, err
	}
	l := &lab{dir: dir, runs: runs, progress: progress}
	l.say("building consul-ecs")
	if bin := os.Getenv("CONSUL_ECS_BIN"); bin != "" { // what make has built
		l.program = filepath.Join(bin, "consul-ecs")
	} else if l.program, err = l.build(ctx, "./cmd/consul-ecs"); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *lab) close() { os.RemoveAll(l.dir) }

func (l *lab) say(format string, args ...any) { fmt.Fprintf(l.progress, format+"\n", args...) }

// repeat returns the number of runs of a measurement whose own number is n.
func (l *lab) repeat(n int) int {
	if l.runs > 0 {
		return l.runs
	}
	return n
}

// build makes a static, stripped program of a package of this module and
// returns its path.
func (l *lab) build(ctx context.Context, pkg string) (string, error) {
	path := filepath.Join(l.dir, filepath.Base(pkg))
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, pkg)
	cmd.Dir = testkit.Root()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", pkg, err, out)
	}
	return path, nil
}

// stage runs one figure and clears up after it.
func (l *lab) stage(ctx context.Context, f figure) ([]row, error) {
	ctx, cancel := context.WithTimeout(ctx, figureLimit)
	defer cancel()
	s := &stage{lab: l, ctx: ctx}
	defer s.close()
	return f.run(s)
}

// stage is one figure's setup: servers and processes that end with it.
type stage struct {
	*lab
	ctx     context.Context
	closers []func()
}

// onClose adds what is to be undone, last first.
func (s *stage) onClose(f func()) { s.closers = append(s.closers, f) }

func (s *stage) close() {
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
	s.closers = nil
}

// pause sleeps unless the figure is cut short.
func (s *stage) pause(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// until asks every so often whether something is so, at most for the limit,
// and returns the moment it was.
func (s *stage) until(what string, every, limit time.Duration, so func() bool) (time.Time, error) {
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
func (s *stage) serve(address string, h http.Handler) (string, error) {
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

func (s *stage) consul(acl bool) (*consul, error) {
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

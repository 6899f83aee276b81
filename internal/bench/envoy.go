package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	stopRuns    = 24
	drainCopies = 3
	// drainTime is how long the child takes to end after TERM.
	drainTime = 5 * time.Second
	// quietTime passes before memory is looked at.
	quietTime = 3 * time.Second
)

// envoyRole is the first argument that makes this program play Envoy.
const envoyRole = "play-envoy"

// roleLimit ends a forgotten player.
const roleLimit = 2 * time.Minute

// playEnvoy prints "ready", then "term" at TERM, and ends after the delay that
// is its first argument. What follows is for the wrapper's eyes.
func playEnvoy(args []string) int {
	hold, err := time.ParseDuration(args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitUsage
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	fmt.Println("ready")
	select {
	case <-terminated:
		fmt.Println("term")
	case <-time.After(roleLimit):
		return exitUnknown
	}
	time.Sleep(hold)
	return exitOK
}

// wrap starts envoy-entrypoint around a player that reads like Envoy: its
// bootstrap names an admin interface, so the wrapper drains it.
func (s *fixture) wrap(t *task, admin string, hold time.Duration) (*child, error) {
	host, port := splitAddress(admin)
	bootstrap := fmt.Sprintf(`{"admin":{"address":{"socket_address":{"address":%q,"port_value":%s}}}}`, host, port)
	path := filepath.Join(t.dir, workload.FileBootstrap)
	if err := os.WriteFile(path, []byte(bootstrap), 0o600); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c, err := s.start([]string{awsutil.MetadataEnvVar + "=" + t.uri}, s.harness.program, "envoy-entrypoint",
		"-start-timeout=0", "--",
		self, envoyRole, hold.String(), "--config-path", path)
	if err != nil {
		return nil, err
	}
	_, err = c.expect("ready")
	return c, err
}

// admin starts Envoy's admin interface as far as draining needs it.
func (s *fixture) admin() (string, error) {
	return s.serve("", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "OK") }))
}

// stopFigure sends the wrapper TERM, stops the application at a random moment
// after it and waits for the child's TERM.
func stopFigure(s *fixture) ([]row, error) {
	admin, err := s.admin()
	if err != nil {
		return nil, err
	}
	var ours, floor sample
	for range s.harness.repeat(stopRuns) {
		d, err := s.stopOnce(admin)
		if err != nil {
			return nil, err
		}
		ours.add(seconds.of(d))
		if d, err = s.termDirectly(); err != nil {
			return nil, err
		}
		floor.add(seconds.of(d))
	}
	return []row{{"application stopped to Envoy's TERM", seconds, "0.44 median", "0.15 median", ours,
		[]reference{{"TERM sent directly", floor}}}}, nil
}

func (s *fixture) stopOnce(admin string) (time.Duration, error) {
	t, err := s.newTask("bench", workload.ContainerSidecarProxy, "app")
	if err != nil {
		return 0, err
	}
	c, err := s.wrap(t, admin, 0)
	if err != nil {
		return 0, err
	}
	if err := c.signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	if err := s.pause(300*time.Millisecond + rand.N(time.Second)); err != nil {
		return 0, err
	}
	stopped := t.stopContainer("app")
	at, err := c.expect("term")
	if err != nil {
		return 0, err
	}
	return at.Sub(stopped), c.wait()
}

// termDirectly measures the time that a signal and a line through a pipe take.
func (s *fixture) termDirectly() (time.Duration, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	c, err := s.start(nil, self, envoyRole, "0s")
	if err != nil {
		return 0, err
	}
	if _, err := c.expect("ready"); err != nil {
		return 0, err
	}
	sent := time.Now()
	if err := c.signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	at, err := c.expect("term")
	if err != nil {
		return 0, err
	}
	return at.Sub(sent), c.wait()
}

// drainFigure runs several wrappers side by side: memory while Envoy serves,
// CPU between Envoy's TERM and its end.
func drainFigure(s *fixture) ([]row, error) {
	admin, err := s.admin()
	if err != nil {
		return nil, err
	}
	floor, err := s.harness.build(s.ctx, poller)
	if err != nil {
		return nil, err
	}
	var tasks []*task
	var ours, floors []*child
	for range s.harness.repeat(drainCopies) {
		t, err := s.newTask("bench", workload.ContainerSidecarProxy, "app")
		if err != nil {
			return nil, err
		}
		c, err := s.wrap(t, admin, drainTime)
		if err != nil {
			return nil, err
		}
		poll, err := s.start(nil, floor, t.uri+"/task")
		if err != nil {
			return nil, err
		}
		tasks, ours, floors = append(tasks, t), append(ours, c), append(floors, poll)
	}
	serving, err := s.watch(quietTime, ours, floors)
	if err != nil {
		return nil, err
	}
	for i, c := range ours {
		tasks[i].stopContainer("app")
		if err := c.signal(syscall.SIGTERM); err != nil {
			return nil, err
		}
	}
	for _, c := range ours {
		if _, err := c.expect("term"); err != nil {
			return nil, err
		}
	}
	const look = drainTime - 500*time.Millisecond
	draining, err := s.watch(look, ours, floors)
	if err != nil {
		return nil, err
	}
	return []row{
		{"envoy-entrypoint: RSS", megabytes, "13.5", "12", serving[0].rss, []reference{{pollerWhat, serving[1].rss}}},
		{
			"envoy-entrypoint: CPU while Envoy drains", percent, "100", "1", draining[0].percent(look),
			[]reference{{pollerWhat, draining[1].percent(look)}},
		},
	}, nil
}

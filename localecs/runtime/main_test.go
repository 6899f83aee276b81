package runtime

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/network"
)

func TestMain(m *testing.M) {
	host.Dispatch(Role())
	if filepath.Base(os.Args[0]) == "helper" {
		os.Exit(helper(os.Args[1:]))
	}
	playRole()
	if os.Getenv(simulatorVariable) != "" {
		os.Exit(simulator())
	}
	os.Exit(testkit.Main(m))
}

// newRuntime makes a runtime for one test; it skips where the host has none.
func newRuntime(t testing.TB) *Runtime {
	t.Helper()
	r, err := New(Options{})
	var missing *host.MissingError
	if errors.As(err, &missing) {
		testkit.Missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// newTask makes the network of a task in its own VPC.
func newTask(t testing.TB) *network.Namespace {
	t.Helper()
	f, err := network.New(network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	n, err := f.Attach("task")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// toolbox returns an image with this test binary as /bin/helper and a shell.
func toolbox(t testing.TB) Image {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return toolboxOf(exe)
}

func toolboxOf(exe string) Image {
	return Image{
		Name:     "toolbox",
		Programs: map[string]string{"/bin/helper": exe, "/bin/sh": "/bin/sh", "/bin/sleep": "/bin/sleep"},
		Users:    map[string]string{"envoy": "5995:5990"},
	}
}

// logs collects output and lets a test wait for a line.
type logs struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func newLogs() *logs { return &logs{changed: make(chan struct{}, 1)} }

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// await waits until text was written.
func (l *logs) await(t testing.TB, text string) {
	t.Helper()
	timeout := time.After(testkit.Patience)
	for !strings.Contains(l.String(), text) {
		select {
		case <-l.changed:
		case <-timeout:
			t.Fatalf("no %q in the output:\n%s", text, l)
		}
	}
}

// start starts a container of the toolbox whose output is collected.
func start(t testing.TB, r *Runtime, s Spec) (*Container, *logs) {
	t.Helper()
	out := newLogs()
	if s.Image.Name == "" {
		s.Image = toolbox(t)
	}
	if s.Name == "" {
		s.Name = "app"
	}
	s.Stdout, s.Stderr = out, out
	c, err := r.Start(s)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return c, out
}

// run starts a container and returns how it ended and what it wrote.
func run(t testing.TB, r *Runtime, s Spec) (Exit, string) {
	t.Helper()
	c, out := start(t, r, s)
	return await(t, c), out.String()
}

func await(t testing.TB, c *Container) Exit {
	t.Helper()
	select {
	case <-c.Done():
	case <-time.After(testkit.Patience):
		t.Fatal("the container did not end")
	}
	return c.Exit()
}

func sh(line string) []string { return []string{"/bin/sh", "-c", line} }

// lineLog keeps each Write apart.
type lineLog struct {
	mu     sync.Mutex
	writes []string
}

func (l *lineLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes = append(l.writes, string(p))
	return len(p), nil
}

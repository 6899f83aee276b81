package subcommand

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// TestRole lets this test binary be consul-ecs, or the program it wraps.
func TestRole(t *testing.T) {
	testkit.RunRole(map[string]func([]string) int{
		"consul-ecs": Main,
		"worker":     playWorker,
	})
}

// consulECS starts the real command line as a process.
func consulECS(t testing.TB, env []string, args ...string) *testkit.Process {
	t.Helper()
	return testkit.StartProcess(t, testkit.ProcessOptions{Env: env}, testkit.SelfArgs("consul-ecs", args...)...)
}

// worker returns the command line of a wrapped program, see playWorker.
func worker(args ...string) []string { return testkit.SelfArgs("worker", args...) }

// playWorker plays a program that ends with 55 on TERM, unless its first argument
// is "deaf", with 42 on INT and with 0 when its input ends; with "crashes" it kills itself
// on USR2, and with "fails" it ends at once with 9. It prints which signals it gets.
func playWorker(args []string) int {
	ch := make(chan os.Signal, 64)
	signal.Notify(ch, syscall.SIGHUP, syscall.SIGINT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
		syscall.SIGTERM)
	fmt.Println("ready")
	if slices.Contains(args, "fails") {
		return 9
	}
	ended := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	for {
		select {
		case sig := <-ch:
			fmt.Println("got", sig)
			switch {
			case sig == syscall.SIGINT && !slices.Contains(args, "counts"):
				return 42
			case sig == syscall.SIGUSR2 && slices.Contains(args, "crashes"):
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
			case sig == syscall.SIGTERM && !slices.Contains(args, "deaf"):
				return 55
			}
		case <-ended:
			return 0
		}
	}
}

// metadata is a task metadata endpoint whose answer a test changes.
type metadata struct {
	*httptest.Server
	mu     sync.Mutex
	answer http.HandlerFunc
	asked  chan struct{}
}

func newMetadata(t testing.TB) *metadata {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return newMetadataAt(t, l)
}

func newMetadataAt(t testing.TB, l net.Listener) *metadata {
	m := &metadata{asked: make(chan struct{}, 10_000)}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		answer := m.answer
		m.mu.Unlock()
		answer(w, r)
		m.asked <- struct{}{}
	})
	m.Server = &httptest.Server{Listener: l, Config: &http.Server{Handler: handler}}
	m.Start()
	t.Cleanup(m.Close)
	return m
}

// env points consul-ecs here.
func (m *metadata) env() []string { return []string{"ECS_CONTAINER_METADATA_URI_V4=" + m.URL} }

// says changes the answer.
func (m *metadata) says(status int, body string) {
	m.does(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	})
}

func (m *metadata) does(answer http.HandlerFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer = answer
}

// reads waits for n further answers.
func (m *metadata) reads(t *testing.T, n int) {
	t.Helper()
	for len(m.asked) > 0 {
		<-m.asked
	}
	testkit.Eventually(t, "metadata is read", func() bool { return len(m.asked) >= n })
}

// task returns a metadata answer: helpers and pause run on, the application and
// "router" have these statuses. Its Name is that of the asking container, so
// that it answers the base URI, too.
func task(appDesired, appKnown, router string) string {
	container := func(name, kind, desired, known string) string {
		return fmt.Sprintf(`{"Name":%q,"Type":%q,"DesiredStatus":%q,"KnownStatus":%q}`, name, kind, desired, known)
	}
	return `{"Name":"sidecar-proxy","Cluster":"mesh","TaskARN":"arn:aws:ecs:us-west-2:111122223333:task/mesh/0f9de17a6465404e8b1b2356dc13c2f8","Family":"web","DesiredStatus":"STOPPED","KnownStatus":"RUNNING","Containers":[` +
		container("app", "NORMAL", appDesired, appKnown) + "," +
		container("router", "NORMAL", "STOPPED", router) + "," +
		container("consul-client", "NORMAL", "STOPPED", "RUNNING") + "," +
		container("sidecar-proxy", "NORMAL", "STOPPED", "RUNNING") + "," +
		container("consul-ecs-health-sync", "NORMAL", "STOPPED", "RUNNING") + "," +
		`{"Name":"consul-ecs-mesh-init","Type":"NORMAL","DesiredStatus":"RUNNING","KnownStatus":"STOPPED","ExitCode":0},` +
		container("~internal~ecs~pause", "CNI_PAUSE", "RESOURCES_PROVISIONED", "RESOURCES_PROVISIONED") + `]}`
}

var (
	running = task("STOPPED", "RUNNING", "STOPPED")
	stopped = task("STOPPED", "STOPPED", "STOPPED")
)

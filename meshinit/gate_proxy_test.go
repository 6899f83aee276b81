package meshinit_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/meshinit"
	"github.com/meshtask/consul-ecs/workload"
)

// proxyGate is a gate in front of a listener that a test opens.
func proxyGate(t *testing.T, metadata meshinit.Metadata, listeners ...string) (dir string, gate meshinit.Gate, log *testkit.Log) {
	log = &testkit.Log{}
	dir = t.TempDir()
	return dir, meshinit.Gate{
		Dir: dir, Metadata: metadata, Proxy: listeners, Limit: testkit.Patience,
		Log: hclog.New(&hclog.LoggerOptions{Output: log}),
	}, log
}

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestGateOpensWhenAllListenersOfTheProxyAccept(t *testing.T) {
	t.Parallel()
	first, second := listen(t, "127.0.0.1:0"), listen(t, "127.0.0.1:0")
	address := second.Addr().String()
	second.Close()
	_, gate, log := proxyGate(t, &endpoint{err: errors.New("no metadata")}, first.Addr().String(), address)
	ended := make(chan error, 1)
	go func() { ended <- gate.Wait(t.Context()) }()
	testkit.Eventually(t, "the wait is logged", func() bool { return strings.Contains(log.String(), "waiting") })
	select {
	case err := <-ended:
		t.Fatalf("open without the second listener: %v", err)
	default:
	}
	listen(t, address)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestProxyGateHeedsFailureOnly(t *testing.T) {
	t.Parallel()
	closed := listen(t, "127.0.0.1:0")
	closed.Close()
	dir, gate, log := proxyGate(t, &endpoint{task: workload.Task{TaskARN: thisTask}}, closed.Addr().String())
	write := func(outcome, message string) {
		doc := fmt.Sprintf(`{"task":%q,"outcome":%q,"message":%q}`, thisTask, outcome, message)
		if err := os.WriteFile(filepath.Join(dir, workload.FileStatus), []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("ready", "")
	short := gate
	short.Limit = 500 * time.Millisecond
	if err := short.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), closed.Addr().String()) {
		t.Errorf("error = %v, want the listener's address\n%s", err, log)
	}
	write("failed", "log in: refused")
	if err := gate.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "log in: refused") {
		t.Errorf("error = %v, want mesh-init's", err)
	}
}

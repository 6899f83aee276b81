package meshinit_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/meshinit"
	"github.com/meshtask/consul-ecs/workload"
)

// proxyGate returns a gate in front of a listener that a test opens.
func proxyGate(
	t *testing.T, metadata meshinit.Metadata, listeners ...string,
) (dir string, gate meshinit.Gate, log *testkit.Log) {
	log = &testkit.Log{}
	dir = t.TempDir()
	return dir, meshinit.Gate{
		Dir: dir, Metadata: metadata, Proxy: listeners, Limit: testkit.Patience,
		Log: hclog.New(&hclog.LoggerOptions{Output: log}),
	}, log
}

func TestGateOpensWhenAllListenersOfTheProxyAccept(t *testing.T) {
	t.Parallel()
	first, second := testkit.ReservePort(t), testkit.ReservePort(t)
	first.Listen()
	_, gate, log := proxyGate(t, &endpoint{err: errors.New("no metadata")}, first.String(), second.String())
	ended := make(chan error, 1)
	go func() { ended <- gate.Wait(t.Context()) }()
	testkit.Eventually(t, "the wait is logged", func() bool { return strings.Contains(log.String(), "waiting") })
	select {
	case err := <-ended:
		t.Fatalf("open without the second listener: %v", err)
	default:
	}
	second.Listen()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestProxyGateHeedsFailureOnly(t *testing.T) {
	t.Parallel()
	closed := testkit.ClosedAddress(t)
	dir, gate, log := proxyGate(t, &endpoint{task: workload.Task{TaskARN: thisTask}}, closed)
	write := func(outcome, message string) {
		doc := fmt.Sprintf(`{"task":%q,"outcome":%q,"message":%q}`, thisTask, outcome, message)
		if err := os.WriteFile(filepath.Join(dir, workload.FileStatus), []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("ready", "")
	var err error
	for _, limit := range limits() {
		short := gate
		short.Limit = limit
		if err = short.Wait(t.Context()); err == nil || strings.Contains(err.Error(), closed) {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), closed) {
		t.Errorf("error = %v, want the listener's address\n%s", err, log)
	}
	write("failed", "log in: refused")
	if err := gate.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "log in: refused") {
		t.Errorf("error = %v, want mesh-init's", err)
	}
}

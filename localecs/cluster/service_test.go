package cluster

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

const serviceAddress = "10.42.0.254:9000"

// startService starts a service that greets, notes each of its starts in its
// directory, and returns how many there were.
func startService(t *testing.T, w *fixture) *Running {
	t.Helper()
	s, err := w.StartService(t.Context(), Service{
		Name: "server", Image: "tools", Address: "10.42.0.254", Dirs: []string{"/data"},
		Args: []string{"/bin/sh", "-c", "echo start >> /data/starts; while read -r x; do echo $x; done < /data/starts; exec /bin/helper net listen=" + serviceAddress},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// dial connects to the service as a machine outside of the tasks does.
func (w *fixture) dial(t *testing.T) (net.Conn, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	return w.Fabric().Infra().DialContext(ctx, "tcp", serviceAddress)
}

// greets reports whether the service answers.
func (w *fixture) greets(t *testing.T) bool {
	t.Helper()
	c, err := w.dial(t)
	if err != nil {
		return false
	}
	defer c.Close()
	text, _ := io.ReadAll(c)
	return string(text) == "hello from "+serviceAddress
}

func ended(s *Running) bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}

func TestServiceComesBackWithWhatItHad(t *testing.T) {
	t.Parallel()
	w := newTools(t, nil)
	s := startService(t, w)
	testkit.Eventually(t, "the service greets", func() bool { return w.greets(t) })
	up, err := s.Down()
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Down()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		must(t, up)
		if _, err := w.dial(t); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial what is down: %v", err)
		}
	}
	if _, err := s.Freeze(); err == nil || err.Error() != "freeze server: it is down" {
		t.Errorf("freeze what is down: %v", err)
	}
	must(t, again)
	testkit.Eventually(t, "the service greets again", func() bool { return w.greets(t) })
	must(t, again)
	if ended(s) {
		t.Error("it counts as ended")
	}
	text, err := os.ReadFile(s.LogFile)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(text), "start\n"); got != 3 {
		t.Errorf("starts in the log of both runs: %d, want 1 and 2:\n%s", got, text)
	}
	if up, err = s.Down(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	must(t, up)
	if !ended(s) {
		t.Error("it has not ended with the cluster")
	}
	if _, err := s.Down(); !errors.Is(err, errEnded) {
		t.Errorf("down after the end: %v", err)
	}
	if _, err := s.Slow(); !errors.Is(err, errEnded) {
		t.Errorf("slow after the end: %v", err)
	}
}

func TestServiceThatExitsHasEnded(t *testing.T) {
	t.Parallel()
	w := newTools(t, nil)
	s, err := w.StartService(t.Context(), Service{Name: "server", Image: "tools", Address: "10.42.0.254", Args: []string{"/bin/helper", "exit", "1", "0s"}})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done():
	case <-time.After(testkit.Patience):
		t.Error("it goes on")
	}
}

func TestServiceThatCannotRestartHasEnded(t *testing.T) {
	t.Parallel()
	w := newTools(t, nil)
	s := startService(t, w)
	up, err := s.Down()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(w.volumeDir()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := up(); err == nil || !strings.HasPrefix(err.Error(), "start server again: ") {
			t.Errorf("up: %v", err)
		}
	}
	if !ended(s) {
		t.Error("it has not ended")
	}
}

func TestFrozenServiceHasConnectionsAndNoAnswers(t *testing.T) {
	t.Parallel()
	w := newTools(t, nil)
	s := startService(t, w)
	testkit.Eventually(t, "the service greets", func() bool { return w.greets(t) })
	end, err := s.Freeze()
	if err != nil {
		t.Fatal(err)
	}
	c, err := w.dial(t)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stalls(t, c)
	must(t, end)
	if text, err := io.ReadAll(c); string(text) != "hello from "+serviceAddress || err != nil {
		t.Errorf("afterwards: %q, %v", text, err)
	}
	if end, err = s.Slow(); err != nil {
		t.Fatal(err)
	}
	if !w.greets(t) {
		t.Error("a slow service does not answer at all")
	}
	up, err := s.Down() // kills what is stopped
	if err != nil {
		t.Fatal(err)
	}
	must(t, end)
	must(t, up)
	testkit.Eventually(t, "the service greets", func() bool { return w.greets(t) })
}
